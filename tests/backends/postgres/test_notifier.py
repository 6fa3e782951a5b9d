"""Wake-ups through the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from ropewalk.backends.postgres import PostgresStore
from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.notifier import PAYLOAD_BYTES_MAX, PostgresNotifier, encode_hint, merged
from ropewalk.ports.notifier import Hint
from ropewalk.runtime.system import SystemRuntime
from tests.backends.postgres.conftest import OpenStore
from tests.servers.databases import sessions, terminate
from tests.servers.postgres import Postgres
from tests.servers.proxy import Proxy

WITHIN_SECONDS = 20


class Heard:
    def __init__(self, store: PostgresStore) -> None:
        self._loop = asyncio.get_running_loop()
        self._hints: asyncio.Queue[Hint] = asyncio.Queue()
        store.notifier.subscribe(self._hear)

    def _hear(self, hint: Hint) -> None:
        self._loop.call_soon_threadsafe(self._hints.put_nowait, hint)

    async def until(self, fits: Callable[[Hint], bool]) -> Hint:
        async with asyncio.timeout(WITHIN_SECONDS):
            while not fits(hint := await self._hints.get()):
                pass
        return hint

    @property
    def nothing(self) -> bool:
        return self._hints.empty()


@pytest.mark.asyncio
class TestBetweenProcesses:
    async def test_one_tells_the_other_once(self, open_store: OpenStore) -> None:
        one, other = await open_store(), await open_store()
        there, here = Heard(other), Heard(one)
        one.notifier.publish(Hint(ready=("mail",)))
        assert await there.until(lambda hint: bool(hint.ready)) == Hint(ready=("mail",))
        assert await here.until(lambda hint: bool(hint.ready)) == Hint(ready=("mail",))
        other.notifier.publish(Hint(control=True))
        await here.until(lambda hint: hint.control)
        assert here.nothing, "it was told of its own hint a second time"

    async def test_it_listens_again_when_its_session_was_ended(
        self, postgres: Postgres, open_store: OpenStore, url: str
    ) -> None:
        one, other = await open_store(), await open_store()
        heard = Heard(other)
        for time in range(5):
            for pid, statement in sessions(postgres, url.rpartition("/")[2].partition("?")[0]).items():
                if statement.startswith(("LISTEN", "SELECT pg_notify")):
                    terminate(postgres, pid)
            await heard.until(lambda hint: hint.many)  # what was said meanwhile nobody knows
            queue = f"mail-{time}"
            one.notifier.publish(Hint(ready=(queue,)))
            await heard.until(partial(_names, queue))

    async def test_a_connection_that_is_cut_at_once_is_tried_less_and_less_often(
        self, postgres: Postgres, url: str
    ) -> None:
        """Each time it listens successfully, and is cut then. Pauses that started over would make 15 tries of it."""
        async with Proxy(postgres.port) as proxy:
            loop, tries = asyncio.get_running_loop(), 0
            through_proxy = url.replace(f":{postgres.port}/", f":{proxy.port}/")
            notifier = PostgresNotifier(Address.of(through_proxy), SystemRuntime())

            def cut(_: Hint) -> None:
                nonlocal tries
                tries += 1
                loop.call_soon_threadsafe(proxy.cut)

            notifier.subscribe(cut)
            await asyncio.sleep(2)
            await notifier.pause()
        assert 2 <= tries <= 6

    async def test_turned_off_nobody_connects_for_it(self, postgres: Postgres, url: str) -> None:
        store = PostgresStore(f"{url}&notify=off", SystemRuntime(), allow_weaker_durability=True)
        await store.open()
        try:
            heard = Heard(store)
            store.notifier.publish(Hint(ready=("mail",)))
            await heard.until(lambda hint: bool(hint.ready))
            statements = sessions(postgres, url.rpartition("/")[2].partition("?")[0]).values()
            assert len(statements) == 1
            assert not [each for each in statements if "LISTEN" in each or "pg_notify" in each]
        finally:
            await store.close()


def _names(queue: str, hint: Hint) -> bool:
    return queue in hint.ready


def test_a_hint_fits_into_a_payload() -> None:
    payload = encode_hint("me", Hint(finished=tuple(f"job-{n:040}" for n in range(1000)), control=True))
    assert len(payload.encode()) <= PAYLOAD_BYTES_MAX
    assert '"many":true' in payload
    assert "job-" in payload
    assert (
        encode_hint("me", Hint(ready=("q" * 9000,), control=True))
        == '{"sender":"me","hint":{"many":true,"control":true}}'
    )


def test_hints_are_put_together() -> None:
    hint = merged(Hint(ready=("a",), finished=("1",)), Hint(ready=("a", "b"), control=True))
    assert hint == Hint(ready=("a", "b"), finished=("1",), control=True)
