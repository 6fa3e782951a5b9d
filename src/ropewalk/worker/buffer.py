"""The buffer holds claimed jobs on their way to a slot, in the order of their tickets.

A job leaves the buffer only when the store already counts it as started (its ticket is at most the permitted one). So
the store never takes a job that was running when its worker died for one that was still waiting in the buffer.

A runner is the task of a slot that waits here for a job. Only one runner is woken in each turn of the event loop: a
slot whose handlers never wait takes one job after another without going through the loop (executor.py), and a hundred
runners woken beside it would find one job each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ropewalk.worker.attempt import Attempt


class Permit(NamedTuple):
    """The message of the next claim that says which jobs may start, so that the store counts them as started."""

    upto: int
    """Every ticket up to this one counts as started, except those in `unstarted`."""
    unstarted: tuple[int, ...] = ()
    """These tickets do not count as started, although they are not above `upto`."""


class Buffer:
    """A buffer from which jobs start in the order of their tickets."""

    def __init__(self) -> None:
        self._waiting: deque[Attempt] = deque()
        self._runners: deque[asyncio.Future[Attempt | None]] = deque()
        self._permitted = 0
        self._hand_out_due = False
        self.running: set[Attempt] = set()
        """The attempts that have left the buffer for a slot and have not ended."""
        self.low_mark: int | None = None
        """`on_low` is called when the buffer has shrunk to this length; None means never."""
        self.on_low: Callable[[], object] = lambda: None
        """This is called once when the buffer has shrunk to `low_mark`, to claim more jobs."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self._waiting)

    @property
    def oldest(self) -> Attempt | None:
        """The attempt that has waited here longest."""
        return self._waiting[0] if self._waiting else None

    @property
    def idle_runners(self) -> int:
        """The number of slots that wait here for a job."""
        return len(self._runners)

    @property
    def blocked(self) -> bool:
        """Whether a job and a free slot are there, but the store does not count the job as started yet."""
        return bool(self._runners and self._waiting) and not self.may_start()

    def may_start(self) -> bool:
        """Whether the store counts the next job as started, so that it may leave now."""
        return bool(self._waiting) and self._waiting[0].job.ticket <= self._permitted

    def permit(self, number: int, last_ticket: int) -> Permit:
        """Returns the permit for the next claim, by which `number` more jobs may start.

        Jobs that wait here come first; the rest are jobs that the claim itself brings, with tickets after
        `last_ticket`.
        """
        beyond = number - len(self._waiting)
        if beyond > 0:
            return Permit(max(self._permitted, last_ticket + beyond))
        return Permit(max(self._permitted, self._waiting[number - 1].job.ticket if number else 0))

    def put(self, attempts: Iterable[Attempt], *, started_upto: int) -> None:
        """Adds the jobs of a claim. Every job with a ticket up to `started_upto` may start now."""
        self._waiting.extend(attempts)
        self._permitted = max(self._permitted, started_upto)
        self._hand_out()

    def put_first(self, attempt: Attempt) -> None:
        """Adds a job that skips the queue: it has no ticket, and the store already counts it as started."""
        self._waiting.appendleft(attempt)
        self._hand_out()

    def take(self) -> Attempt | None:
        """Returns the next job if it may start now."""
        if not self.may_start():
            return None
        attempt = self._leave()
        if self.low_mark is not None and len(self._waiting) <= self.low_mark:
            self.low_mark = None
            self.on_low()
        return attempt

    async def wait(self) -> Attempt | None:
        """Waits for a job: returns it when it may start and the slots that waited longer have got theirs. Returns None
        if `wake_runner` ends the wait."""
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
        """Ends the wait of one slot, because there is other work for it than a job in the buffer."""
        while self._runners:
            runner = self._runners.popleft()
            if not runner.done():
                runner.set_result(None)
                return

    def take_overtaken(self, seconds: float) -> list[Attempt]:
        """Removes and returns the jobs that have waited longer than `seconds` while others started before them. In this
        buffer no job overtakes another one."""
        return []

    def take_all(self) -> list[Attempt]:
        """Removes and returns all jobs that have not started, for example to give them back."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def _hand_out(self) -> None:
        """Gives the next job to one waiting slot, and to another one in the next turn of the loop."""
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
        """Puts an attempt back that never started, because the slot that got it has ended."""
        self.running.discard(attempt)
        self._waiting.appendleft(attempt)
