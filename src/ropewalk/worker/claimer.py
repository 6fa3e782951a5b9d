"""The claimer asks the store for jobs: as many as fit the free slots, and a few more that will start in a moment.

Beyond the slots, the buffer holds jobs for at most 100 ms at the measured speed of the handlers. Only those that will
start before the next claim count as started, so that a worker that dies uses up no attempt of a job it never ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ropewalk.definitions.context.attempt_port import Cancellation
from ropewalk.domain.jobs.lease import LossReason, TicketRange, merged_ranges
from ropewalk.domain.jobs.order import TenantQueue
from ropewalk.domain.jobs.quarantine import Suspects
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import SECOND
from ropewalk.errors import OutcomeUnknown, StoreUnavailable
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.claims import Claimed, ClaimRequest
from ropewalk.ports.store.consequences import Consequences
from ropewalk.runtime.wake import Signal, Wake
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.buffer import Buffer
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.executor import BUFFER_SECONDS, Executor
from ropewalk.worker.policies.admission import Ask
from ropewalk.worker.policies.backpressure import Backpressure, Load
from ropewalk.worker.policies.worker_policies import WorkerPolicies
from ropewalk.worker.settler import Settler

AHEAD_SECONDS: Final = 0.02
"""A claim permits as many buffered jobs to start as the slots finish in this time, until the next claim permits
more."""
HOARD_SECONDS: Final = 1.0
"""A job that has waited in the buffer for longer than this is given back, so that another worker can run it."""


class Claimer:
    """The loop of one worker that claims jobs."""

    def __init__(
        self,
        worker_context: WorkerContext,
        buffer: Buffer,
        executor: Executor,
        settler: Settler,
        policies: WorkerPolicies,
        *,
        queues: tuple[str, ...] | None,
        tenants: tuple[str, ...] | None,
        poll_seconds: float,
    ) -> None:
        self._worker_context = worker_context
        self._buffer = buffer
        self._executor = executor
        self._settler = settler
        self._policies = policies
        self._queues = queues
        self._tenants = tenants
        self._poll_seconds = poll_seconds
        self._types = worker_context.leases()
        self._wake = Wake(worker_context.runtime)
        self._ended = Wake(worker_context.runtime)
        self._stopping = False
        self._ticket = 0
        """The last ticket that a claim used or may have used; tickets up to it are never used again."""
        self._unanswered: tuple[TicketRange, ...] = ()
        """The tickets of claims that failed and may have leased jobs; the next claim gives these jobs back."""
        self.ended = Signal()
        """This fires when the loop has ended and no job is leased to this worker without its knowledge."""
        self.over = False
        """Whether the loop has ended."""
        self.turn = 0
        """Number of claims sent."""
        self.answered_turn = 0
        """Number of the last claim that was answered."""
        self._held_up: TenantQueue | None = None
        """The last claim ended at this tenant and queue, at a job that needs a free slot; until a slot is free, no more
        jobs are claimed."""
        self._gave_back = False
        """Buffered jobs waited too long and were given back; until a slot is free, no more jobs are buffered."""
        self.last_poll_at: float | None = None
        """The monotonic time of the last successful claim, which decides whether the worker is ready."""
        self.claims = 0
        """The number of successful claims."""
        self._last_claim = 0
        """The number of jobs that the last claim brought."""
        self.holds_off = False
        """Whether the backpressure of this worker delays the next claim."""
        self.last_was_empty = False
        """Whether the last claim brought no job and could have: the worker held no jobs then, except items of batches
        that are not full."""
        self.on_consequences: Callable[[Consequences], object] = lambda _: None
        """This is called with jobs that a claim moved otherwise, such as those whose deadline had passed."""
        self.on_claimed: Callable[[], object] = lambda: None
        """This is called after each successful claim."""

    @property
    def has_free_slot(self) -> bool:
        """Whether a slot waits for which the buffer has no job."""
        return not self._stopping and self._free_slots() > 0

    def nudge(self) -> None:
        """Has the loop look at once whether to claim, because a slot became free or a job may be ready."""
        self._wake.set()

    def hint(self, hint: Hint) -> None:
        """Wakes the loop if a hint says that jobs of this worker may be ready. Any thread may call this."""
        if hint.many or hint.control or self._serves(hint.ready):
            self._wake.set_threadsafe()

    def stop(self) -> None:
        """Has the loop end after the claim that is under way."""
        self._stopping = True
        self._wake.set()
        self._ended.set()

    async def run(self) -> None:
        """Claims in a loop, which ends after `stop`."""
        while not self._stopping:
            self._wake.clear()
            wanted = self._wanted()
            if wanted == 0 and not self._buffer.blocked and not self._unanswered:
                self._give_back_what_waits()
                target = self._target()
                self._buffer.low_mark = target - _refill(target) - self._executor.slots
                await self._wake.wait(self._poll_seconds)
                continue
            if overtaken := self._buffer.take_overtaken(HOARD_SECONDS):
                self._give_back(overtaken)
                continue
            if self._policies.pressure is not None:
                await self._hold_off(self._policies.pressure)
                if self._stopping:
                    break
                wanted = self._wanted()
            claimed = await self._claim(wanted)
            if len(claimed.jobs) < max(1, wanted):
                await self._rest(claimed)
        if self._unanswered:
            await self._claim(0)
        self.over = True
        self.ended.fire()

    async def _hold_off(self, pressure: Backpressure) -> None:
        """Waits before a claim for as long as the backpressure asks for. Buffered jobs start meanwhile; if they would
        have to wait long, they are given back."""
        load = Load(
            slots=self._executor.slots,
            running=len(self._buffer.running),
            buffered=len(self._buffer),
            settled=self._settler.settled,
            failed=self._settler.failed,
            handler_seconds=self._executor.mean_seconds,
            settle_seconds=self._settler.settle_seconds,
            lag_seconds=0.0,
            last_claim=self._last_claim,
        )
        seconds = await pressure.wait_seconds(load)
        if seconds > HOARD_SECONDS:
            self._give_back(self._buffer.take_all())
        if seconds > 0 and not self._stopping:
            self.holds_off = True
            await self._ended.wait(seconds)
            self.holds_off = False

    async def _claim(self, wanted: int) -> Claimed:
        """Sends one claim for up to `wanted` jobs, and puts the jobs that it brings into the buffer."""
        policies, slots = self._policies, self._free_slots()
        ahead = self._executor.work_in(AHEAD_SECONDS, self._executor.slots)
        ask = self._plain_ask(wanted) if policies.admission is None else policies.admission.ask(wanted)
        last_ticket = self._ticket
        permit = self._buffer.permit(self._buffer.idle_runners + ahead, last_ticket)
        self.turn += 1
        at_rest = len(self._worker_context.attempts) == self._executor.batches.gathered
        asked_at = self._worker_context.runtime.monotonic()
        claimed = await self._answered(
            ClaimRequest(
                owner=self._worker_context.owner,
                types=ask.types,
                tenants=self._tenants,
                queues=self._queues,
                slots=slots,
                limit=ask.limit,
                room=ask.room,
                ignored=ask.ignored,
                suspects=Suspects.of(self._worker_context.suspects.values(), self._executor.slots),
                first_ticket=last_ticket + 1,
                started_upto=permit.upto,
                unstarted=permit.unstarted,
                unanswered=self._unanswered,
                turn=self.turn,
                first=self._held_up,
                take_back_until=self._worker_context.take_back_until(),
            )
        )
        self._worker_context.contact.answered("claim", asked_at, claimed.now)
        assert len(claimed.jobs) <= ask.limit, f"asked for {ask.limit} jobs, got {len(claimed.jobs)}"
        if ask.limit:  # A claim that asks for no jobs looks at no tenant and queue.
            self._held_up = claimed.held_up
        self.last_poll_at = self._worker_context.runtime.monotonic()
        self.claims += 1
        self.answered_turn = self.turn
        self._last_claim = len(claimed.jobs)
        self.last_was_empty = not claimed.jobs and wanted > 0 and at_rest
        if self._worker_context.events.meter is not None:
            self._worker_context.events.meter.claimed(len(claimed.jobs))
        self._accept(claimed, permit.upto)
        if policies.alarm is not None and ask.limit:
            policies.alarm.saw(claimed, filled=len(claimed.jobs) == ask.limit)
        if claimed.moved or claimed.closed or claimed.passed_over:
            moved, closed, passed_over = claimed.moved, claimed.closed, claimed.passed_over
            self.on_consequences(Consequences(moved=moved, closed=closed, passed_over=passed_over))
        self.on_claimed()
        return claimed

    async def _answered(self, request: ClaimRequest) -> Claimed:
        """Sends a claim and returns the answer.

        If the answer is lost, the worker does not know which jobs are leased under the tickets of the claim. It never
        uses these tickets again, and its next claim gives back the jobs that were leased under them.
        """
        first, known = request.first_ticket, self._unanswered
        self._ticket = first - 1 + request.limit
        if request.limit:
            self._unanswered = merged_ranges(known, [TicketRange(first, self._ticket)])
        try:
            claimed = await self._worker_context.store.claim(request)
        except StoreUnavailable as error:
            if not isinstance(error, OutcomeUnknown):
                self._ticket, self._unanswered = first - 1, known
            raise
        self._ticket, self._unanswered = first - 1 + len(claimed.jobs), ()
        return claimed

    def _accept(self, claimed: Claimed, upto: int) -> None:
        attempts = leased(claimed.jobs, self._worker_context)
        if claimed.limited:
            limited = set(claimed.limited)
            for attempt in attempts:
                attempt.limited = attempt.job.seq in limited
        if self._stopping:
            self._settler.release(attempts)
            return
        if self._policies.admission is not None:
            attempts = self._policies.admission.admit(attempts)
        self._buffer.put(attempts, started_upto=upto)

    async def _rest(self, claimed: Claimed) -> None:
        """Sleeps when no more jobs are ready: until a hint, the next poll, or the time of the next job that is due."""
        seconds = self._poll_seconds
        if claimed.next_due is not None:
            seconds = min(seconds, max(0.001, (claimed.next_due - claimed.now) / SECOND))
        if self._policies.admission is not None and (room_in := self._policies.admission.room_in_seconds()) is not None:
            seconds = min(seconds, max(0.001, room_in))
        await self._wake.wait(seconds)

    def _give_back_what_waits(self) -> None:
        """Gives back the buffered jobs if they have waited too long because handlers are slower than measured: an idle
        worker can run them sooner."""
        oldest = self._buffer.oldest
        if oldest is not None and oldest.since_claim() > HOARD_SECONDS:
            self._give_back(self._buffer.take_all())

    def _give_back(self, attempts: list[Attempt]) -> None:
        self._gave_back = True
        self._settler.release(attempts)

    def _wanted(self) -> int:
        """Returns how many jobs to claim now. Free slots are filled at once; the buffer is filled only when enough jobs
        are missing, so that claims stay large."""
        if self._policies.free_slots is not None:
            self._executor.keep_free(self._policies.free_slots)
        idle, free, target = self._buffer.idle_runners, self._free_slots(), self._target()
        if free:
            self._gave_back = False
        missing = target - (len(self._buffer) + self._executor.slots - idle)
        patient = self._gave_back or self._held_up is not None or missing < _refill(target)
        if missing <= 0 or (free == 0 and patient):
            return 0
        return missing

    def _target(self) -> int:
        """Returns how many jobs this worker should have, running and buffered together."""
        slots = self._executor.slots
        return slots + max(self._policies.ahead, self._executor.work_in(BUFFER_SECONDS, slots))

    def _plain_ask(self, wanted: int) -> Ask:
        return Ask(wanted, self._types, {}, self._worker_context.misfits.ignored())

    def _free_slots(self) -> int:
        """Returns the number of waiting slots for which the buffer has no job."""
        return max(0, self._buffer.idle_runners - len(self._buffer))

    def _serves(self, queues: tuple[str, ...]) -> bool:
        return bool(queues) and (self._queues is None or not set(queues).isdisjoint(self._queues))


def _refill(target: int) -> int:
    """Returns the least number of jobs that is worth a claim while every slot is busy."""
    return target // 3


def leased(jobs: Iterable[JobRecord], worker_context: WorkerContext) -> list[Attempt]:
    """Makes attempts of claimed jobs, and records them among the leases that this worker holds."""
    now, type_of = worker_context.runtime.monotonic(), worker_context.registry.get
    attempts = [Attempt(job, type_of(job.type), worker_context, now) for job in jobs]
    for attempt in attempts:
        worker_context.hold(attempt)
        if attempt.job.cancel is not None:  # It was requested between the last attempt and this claim.
            attempt.notice(Cancellation(LossReason.CANCELLED, attempt.job.cancel.reason))
    return attempts
