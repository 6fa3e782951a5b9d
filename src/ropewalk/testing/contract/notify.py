"""Hints between the parts of one store, and between stores on the same data."""

from __future__ import annotations

import asyncio
import threading

from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.core import Store
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench

HINT = Hint(ready=("default",), finished=("a", "b"), many=True, control=True)
ARRIVES_WITHIN_SECONDS = 10.0


class Mailbox:
    """A subscriber that collects the hints of a store, on whatever thread they arrive."""

    def __init__(self, store: Store) -> None:
        self.hints: list[Hint] = []
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self.unsubscribe = store.notifier.subscribe(self._put)

    async def first(self, wanted: Hint) -> None:
        """Wait until this hint has arrived."""
        async with asyncio.timeout(ARRIVES_WITHIN_SECONDS):
            while wanted not in self.hints:
                self._arrived.clear()
                await self._arrived.wait()

    def _put(self, hint: Hint) -> None:
        self.hints.append(hint)
        self._loop.call_soon_threadsafe(self._arrived.set)


class NotifierContract(Contract):
    """A hint reaches the subscribers of the store that publishes it (R17)."""

    async def test_a_publisher_receives_its_own_hints(self, bench: Bench) -> None:
        mailbox = Mailbox(bench.store)
        bench.store.notifier.publish(HINT)
        await mailbox.first(HINT)
        mailbox.unsubscribe()

    async def test_an_unsubscribed_listener_receives_nothing(self, bench: Bench) -> None:
        gone, there = Mailbox(bench.store), Mailbox(bench.store)
        gone.unsubscribe()
        gone.unsubscribe()
        bench.store.notifier.publish(HINT)
        await there.first(HINT)
        assert gone.hints == []
        there.unsubscribe()

    async def test_a_listener_that_raises_does_not_disturb_others(self, bench: Bench) -> None:
        def broken(hint: Hint) -> None:
            raise RuntimeError(f"cannot take {hint}")

        unsubscribe = bench.store.notifier.subscribe(broken)
        mailbox = Mailbox(bench.store)
        for wanted in (HINT, Hint(control=True)):
            bench.store.notifier.publish(wanted)
            await mailbox.first(wanted)
        unsubscribe()
        mailbox.unsubscribe()

    async def test_a_hint_can_be_published_from_another_thread(self, bench: Bench) -> None:
        mailbox = Mailbox(bench.store)
        thread = threading.Thread(target=bench.store.notifier.publish, args=(HINT,))
        thread.start()
        await mailbox.first(HINT)
        thread.join()
        mailbox.unsubscribe()


class HintBetweenStoresContract(Contract):
    """A hint reaches other stores on the same data, unless a pooler or a setting prevents it (R17)."""

    async def test_a_hint_reaches_every_subscriber_of_every_store_on_the_data(self, bench: Bench) -> None:
        other = await bench.second()
        mailboxes = [Mailbox(store) for store in (bench.store, bench.store, other.store)]
        bench.store.notifier.publish(HINT)
        for mailbox in mailboxes:
            await mailbox.first(HINT)
            mailbox.unsubscribe()
