"""The heartbeat renews the leases of a worker from a thread of its own, which no handler can block.

One call renews every lease that is due and sends the newest progress. The answer says which leases are lost, which
cancellations were requested, and whether the worker should drain.

Only the store knows whether a lease is lost: an expired lease that no worker took back is still valid. So while the
store does not answer, handlers go on and the heartbeat asks again every half second; the first answer decides. A
process that was frozen asks first, too. Only if the store answers with errors does the worker give up a lease when it
has expired by the worker's own clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ropewalk.definitions.context.attempt_port import Cancellation
from ropewalk.domain.growing_pause import GrowingPause
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.time import SECOND
from ropewalk.errors import StoreUnavailable
from ropewalk.ports.runtime import Task
from ropewalk.ports.store.leases import CancelNotice, Renewal, Renewed
from ropewalk.runtime.supervisor import BACKING_OF_STORE_CALLS, Supervisor
from ropewalk.runtime.wake import Wake
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.context import WorkerContext

TICK_SECONDS: Final = 0.5
"""The time between two rounds: progress is sent after at most this time, and a lost lease may be noticed this late."""
RETRY_SECONDS_FIRST: Final = 0.1
"""The wait after the first renewal that the store did not answer; it doubles up to TICK_SECONDS."""
ANSWER_SECONDS_MAX: Final = 30.0
"""A renewal without an answer for this long is sent again; no bundled store takes longer to answer or refuse."""
REPORT_EVERY_SECONDS: Final = 5.0
"""While the store is away, this is reported only this often and not with every try."""
RENEWALS_PER_LEASE: Final = 3
"""A lease is renewed this often before it would expire."""


class Heartbeat:
    """The thread of one worker that renews its leases."""

    def __init__(self, worker_context: WorkerContext) -> None:
        self._worker_context = worker_context
        self._thread: Task | None = None
        self._wake: Wake | None = None
        self._renew_all = False
        """Whether the next beat renews every lease, also those that are not due."""
        self._beat_at = worker_context.runtime.monotonic()
        self.missed = 0
        """The number of calls that the store did not answer."""
        self._retry_pause = GrowingPause(RETRY_SECONDS_FIRST, TICK_SECONDS)
        self._reported_at: float | None = None
        """When it was last reported that the store is away; None once it has answered."""
        self.on_drain: Callable[[], object] = lambda: None
        """This is called on the worker's loop at every beat after the worker was asked to drain."""

    def start(self) -> None:
        self._thread = self._worker_context.runtime.thread(self._main, name="ropewalk-heartbeat")

    async def stop(self) -> None:
        if self._thread is not None:
            self._thread.cancel()
            await self._thread.finished()

    def nudge(self) -> None:
        """Has the thread renew all leases at once, because this worker or one of its jobs may have to stop, which the
        answer says. Any thread may call this."""
        self._renew_all = True
        if self._wake is not None:
            self._wake.set_threadsafe()

    async def _main(self) -> None:
        self._wake = Wake(self._worker_context.runtime)
        supervisor = Supervisor(self._worker_context.runtime, on_error=self._on_error, backing=BACKING_OF_STORE_CALLS)
        await supervisor.keep("heartbeat", self._run)

    async def _run(self) -> None:
        assert self._wake is not None
        while True:
            self._measure_lag()
            self._worker_context.contact.beat()
            await self._wake.wait(await self._round())

    async def _round(self) -> float:
        """Does one beat, and returns after how many seconds the next one is due."""
        try:
            await self.beat()
        except StoreUnavailable as error:
            return self._away(error)
        except Exception:
            self._give_up_expired()
            raise
        self._retry_pause.start_over()
        self._reported_at = None
        return TICK_SECONDS

    def _away(self, error: StoreUnavailable) -> float:
        """Records that the store did not answer, which says nothing about the leases. Returns after how many seconds to
        ask again."""
        self.missed += 1
        self._renew_all = True
        self._worker_context.contact.failed()
        now = self._worker_context.runtime.monotonic()
        if self._reported_at is None or now - self._reported_at >= REPORT_EVERY_SECONDS:
            self._reported_at = now
            self._worker_context.loop_failed(error, "heartbeat")
        return self._retry_pause.after()

    async def beat(self) -> None:
        """Renews the leases that are due, and acts on the answer."""
        renew_all, self._renew_all = self._renew_all or self._worker_context.guard.look(), False
        now = self._worker_context.runtime.monotonic()
        due = [each for each in list(self._worker_context.attempts.values()) if renew_all or self._is_due(each, now)]
        silent_for = now - self._beat_at
        if not due and not renew_all and silent_for < self._worker_context.lease_us / SECOND / RENEWALS_PER_LEASE:
            return
        renewals = [_renewal(each) for each in due]
        answer = await self._answer(renewals)
        self._worker_context.contact.answered("renew", now)
        self._beat_at = now
        for attempt, sent in zip(due, renewals, strict=True):
            if attempt.pending_progress is sent.progress:
                attempt.pending_progress = None
            if attempt.log is not None:
                attempt.log.sent(sent.lines)
        if self._worker_context.events.meter is not None:
            self._worker_context.events.meter.renewed(len(due) - len(answer.lost) - len(answer.busy))
        self._take_in({each.key: each for each in due}, answer, now)
        if answer.drain and not self._worker_context.loop.is_closed():
            self._worker_context.loop.call_soon_threadsafe(self.on_drain)

    async def _answer(self, renewals: list[Renewal]) -> Renewed:
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                return await self._worker_context.store.renew(self._worker_context.owner, renewals)
        except TimeoutError as error:
            raise StoreUnavailable(f"renewals were not answered within {ANSWER_SECONDS_MAX:g} s") from error

    def _measure_lag(self) -> None:
        """Measures how late the worker's event loop runs a callback. A thread beside the loop can see this delay even
        while the loop is blocked."""
        meter, loop, monotonic = (
            self._worker_context.events.meter,
            self._worker_context.loop,
            self._worker_context.runtime.monotonic,
        )
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
                # The lease is counted from the time of the request: the store cannot have renewed it earlier.
                attempt.renewed_at = sent_at
        for notice in answer.cancels:
            noticed = due.get((notice.seq, notice.fence))
            if noticed is not None:
                self._pass_on(noticed, notice)

    def _pass_on(self, attempt: Attempt, notice: CancelNotice) -> None:
        why = Cancellation(LossReason.CANCELLED, notice.reason)
        self._on_loop(attempt, why, stop=notice.force)

    def _give_up_expired(self) -> None:
        """Stops the attempts whose leases have expired by the worker's own clock, because the store may answer with
        errors for ever."""
        now = self._worker_context.runtime.monotonic()
        for attempt in list(self._worker_context.attempts.values()):
            if now - attempt.renewed_at > attempt.lease_us / SECOND and not attempt.gone:
                why = Cancellation(LossReason.STORE_ERROR, "the lease ran out while renewals failed")
                self._on_loop(attempt, why, stop=True)

    def _on_loop(self, attempt: Attempt, why: Cancellation, *, stop: bool) -> None:
        loop = self._worker_context.loop
        if loop.is_closed():
            return
        if stop:
            loop.call_soon_threadsafe(attempt.stop, why)
        else:
            loop.call_soon_threadsafe(attempt.notice, why)

    def _on_error(self, error: BaseException, phase: str) -> None:
        self.missed += 1
        self._worker_context.loop_failed(error, phase)


def _renewal(attempt: Attempt) -> Renewal:
    job, lines = attempt.job, attempt.log.unsent() if attempt.log else ()
    progress = attempt.pending_progress
    return Renewal(seq=job.seq, fence=job.fence, lease_us=attempt.lease_us, progress=progress, lines=lines)
