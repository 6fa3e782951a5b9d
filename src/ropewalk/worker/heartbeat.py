"""Keeps this worker's leases alive, from a thread that no handler can block.

One call renews every lease that is due, carries the newest progress along, and brings back what the store knows:
leases that are lost, cancellations that were asked for, and that the worker is to drain. The thread also checks each
lease against its own monotonic clock: one that ran out unrenewed is given up even if the store says nothing at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ropewalk.definitions.context.attempt_port import Cancellation
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.time import SECOND
from ropewalk.ports.notifier import Hint
from ropewalk.ports.runtime import Task
from ropewalk.ports.store.messages import CancelNotice, Renewal, Renewed
from ropewalk.runtime.supervisor import Supervisor
from ropewalk.runtime.wake import Wake
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.context import WorkerContext

TICK_SECONDS: Final = 0.5
"""how soon progress travels, and how late a loss may be noticed"""
RENEWALS_PER_LEASE: Final = 3


class Heartbeat:
    def __init__(self, bench: WorkerContext) -> None:
        self._bench = bench
        self._thread: Task | None = None
        self._wake: Wake | None = None
        self._asked = False
        self._beat_at = bench.runtime.monotonic()
        self.missed = 0
        """renewals the store did not answer"""
        self.on_drain: Callable[[], object] = lambda: None
        """called on the worker's loop, at every beat from when somebody told this worker to drain"""

    def start(self) -> None:
        self._thread = self._bench.runtime.thread(self._main, name="ropewalk-heartbeat")

    async def stop(self) -> None:
        if self._thread is not None:
            self._thread.cancel()
            await self._thread.finished()

    def hint(self, hint: Hint) -> None:
        """From any thread: somebody may want us to stop, or one of our jobs."""
        if hint.control:
            self._asked = True
            if self._wake is not None:
                self._wake.set_threadsafe()

    async def _main(self) -> None:
        self._wake = Wake(self._bench.runtime)
        supervisor = Supervisor(self._bench.runtime, on_error=self._on_error)
        await supervisor.keep("heartbeat", self._run)

    async def _run(self) -> None:
        assert self._wake is not None
        while True:
            self._measure_lag()
            await self.beat()
            await self._wake.wait(TICK_SECONDS)

    async def beat(self) -> None:
        """One round: give up what ran out, renew what is due."""
        self._give_up_expired()
        asked, self._asked = self._asked or self._bench.guard.look(), False
        now = self._bench.runtime.monotonic()
        due = [each for each in list(self._bench.held.values()) if asked or self._is_due(each, now)]
        silent_for = now - self._beat_at
        if not due and not asked and silent_for < self._bench.lease_us / SECOND / RENEWALS_PER_LEASE:
            return
        renewals = [_renewal(each) for each in due]
        # A store that does not answer must not keep the next round from giving up what ran out.
        async with asyncio.timeout(self._bench.lease_us / SECOND / RENEWALS_PER_LEASE):
            answer = await self._bench.store.renew(self._bench.owner, renewals)
        self._beat_at = now
        for attempt, sent in zip(due, renewals, strict=True):
            if attempt.pending_progress is sent.progress:
                attempt.pending_progress = None
            if attempt.log is not None:
                attempt.log.sent(sent.lines)
        if self._bench.events.meter is not None:
            self._bench.events.meter.renewed(len(due) - len(answer.lost) - len(answer.busy))
        self._take_in({each.key: each for each in due}, answer, now)
        if answer.drain and not self._bench.loop.is_closed():
            self._bench.loop.call_soon_threadsafe(self.on_drain)

    def _measure_lag(self) -> None:
        """How late the worker's loop comes to what is put to it: from here it can be seen, there it cannot."""
        meter, loop, monotonic = self._bench.events.meter, self._bench.loop, self._bench.runtime.monotonic
        if meter is not None and not loop.is_closed():
            asked_at = monotonic()
            loop.call_soon_threadsafe(lambda: meter.lagged(monotonic() - asked_at))

    def _is_due(self, attempt: Attempt, now: float) -> bool:
        if attempt.gone:
            return False
        age = now - attempt.renewed_at
        something_to_say = attempt.pending_progress is not None or bool(attempt.log)
        return something_to_say or age >= attempt.lease_us / SECOND / RENEWALS_PER_LEASE - TICK_SECONDS

    def _take_in(self, due: dict[tuple[int, int], Attempt], answer: Renewed, sent_at: float) -> None:
        lost = {(each.seq, each.fence): each.reason for each in answer.lost}
        busy = set(answer.busy)
        for key, attempt in due.items():
            if key in lost:
                self._on_loop(attempt, Cancellation(lost[key], None), stop=True)
            elif attempt.job.seq not in busy:
                # The lease counts from when the request left: the store cannot have started it earlier.
                attempt.renewed_at = sent_at
        for notice in answer.cancels:
            noticed = due.get((notice.seq, notice.fence))
            if noticed is not None:
                self._pass_on(noticed, notice)

    def _pass_on(self, attempt: Attempt, notice: CancelNotice) -> None:
        why = Cancellation(LossReason.CANCELLED, notice.reason)
        self._on_loop(attempt, why, stop=notice.force)

    def _give_up_expired(self) -> None:
        now = self._bench.runtime.monotonic()
        for attempt in list(self._bench.held.values()):
            if now - attempt.renewed_at > attempt.lease_us / SECOND and not attempt.gone:
                why = Cancellation(LossReason.STORE_ERROR, "the lease ran out before it could be renewed")
                self._on_loop(attempt, why, stop=True)

    def _on_loop(self, attempt: Attempt, why: Cancellation, *, stop: bool) -> None:
        loop = self._bench.loop
        if loop.is_closed():
            return
        if stop:
            loop.call_soon_threadsafe(attempt.stop, why)
        else:
            loop.call_soon_threadsafe(attempt.notice, why)

    def _on_error(self, error: BaseException, phase: str) -> None:
        self.missed += 1
        self._bench.events.loop_failed(error, phase)


def _renewal(attempt: Attempt) -> Renewal:
    job, lines = attempt.job, attempt.log.unsent() if attempt.log else ()
    progress = attempt.pending_progress
    return Renewal(seq=job.seq, fence=job.fence, lease_us=attempt.lease_us, progress=progress, lines=lines)
