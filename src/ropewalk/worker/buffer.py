"""Claimed jobs on their way to a slot, in the order of their tickets.

A job leaves the buffer only when the store already counts it as started (ticket ≤ permitted), so a worker that dies
never leaves a started job looking untouched.

Runners that wait are woken one in each turn of the loop. One whose handlers never wait takes what is here on its own
for a while (executor.py), and a hundred others woken beside it would find one job each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ropewalk.worker.attempt import Attempt


class Permit(NamedTuple):
    """What the next claim tells the store about starts."""

    upto: int
    """every ticket up to it counts as started,"""
    unstarted: tuple[int, ...] = ()
    """but for these"""


class Buffer:
    def __init__(self) -> None:
        self._waiting: deque[Attempt] = deque()
        self._runners: deque[asyncio.Future[Attempt | None]] = deque()
        self._permitted = 0
        self._hand_out_due = False
        self.running: set[Attempt] = set()
        """everything that left for a slot and has not ended: from the very moment it is handed out"""
        self.low_mark: int | None = None
        self.on_low: Callable[[], object] = lambda: None
        """called once when runners have taken all but `low_mark`"""

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self._waiting)

    @property
    def oldest(self) -> Attempt | None:
        return self._waiting[0] if self._waiting else None

    @property
    def idle_runners(self) -> int:
        return len(self._runners)

    @property
    def blocked(self) -> bool:
        """Work and a free runner are there, but the store does not count the work as started yet."""
        return bool(self._runners and self._waiting) and not self.may_start()

    def may_start(self) -> bool:
        """Whether the next one may leave now."""
        return bool(self._waiting) and self._waiting[0].job.ticket <= self._permitted

    def permit(self, number: int, last_ticket: int) -> Permit:
        """Ask for so many more to start: of those that wait here, then of what the claim brings after `last_ticket`."""
        beyond = number - len(self._waiting)
        if beyond > 0:
            return Permit(max(self._permitted, last_ticket + beyond))
        return Permit(max(self._permitted, self._waiting[number - 1].job.ticket if number else 0))

    def put(self, attempts: Iterable[Attempt], *, started_upto: int) -> None:
        self._waiting.extend(attempts)
        self._permitted = max(self._permitted, started_upto)
        self._hand_out()

    def put_first(self, attempt: Attempt) -> None:
        """One that is leased as started outside the line of tickets (skip-queue)."""
        self._waiting.appendleft(attempt)
        self._hand_out()

    def take(self) -> Attempt | None:
        """The next one, if it may start now."""
        if not self.may_start():
            return None
        attempt = self._leave()
        if self.low_mark is not None and len(self._waiting) <= self.low_mark:
            self.low_mark = None
            self.on_low()
        return attempt

    async def wait(self) -> Attempt | None:
        """The next one, as soon as it may start and whoever waited before had its turn; None when `wake_runner` ends
        the wait."""
        runner: asyncio.Future[Attempt | None] = asyncio.get_running_loop().create_future()
        self._runners.append(runner)
        self._hand_out_soon()
        try:
            return await runner
        except asyncio.CancelledError:
            if runner.done() and not runner.cancelled() and (attempt := runner.result()) is not None:
                self._return(attempt)
            raise

    def wake_runner(self) -> None:
        """End the wait of one runner, which has something else to do."""
        while self._runners:
            runner = self._runners.popleft()
            if not runner.done():
                runner.set_result(None)
                return

    def take_overtaken(self, seconds: float) -> list[Attempt]:
        """What others started before, for so long."""
        return []

    def take_all(self) -> list[Attempt]:
        """Everything that has not started, e.g. to release it."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def _hand_out(self) -> None:
        """To one runner; to another in the next turn of the loop."""
        while self._runners and self.may_start():
            runner = self._runners.popleft()
            if not runner.done():
                runner.set_result(self._leave())
                self._hand_out_soon()
                return

    def _hand_out_soon(self) -> None:
        if not self._hand_out_due and self._runners and self.may_start():
            self._hand_out_due = True
            asyncio.get_running_loop().call_soon(self._hand_out_now)

    def _hand_out_now(self) -> None:
        self._hand_out_due = False
        self._hand_out()

    def _leave(self) -> Attempt:
        attempt = self._waiting.popleft()
        self.running.add(attempt)
        return attempt

    def _return(self, attempt: Attempt) -> None:
        """The slot it was meant for is gone: it never started."""
        self.running.discard(attempt)
        self._waiting.appendleft(attempt)
