"""Asks the store for work: as much as fits the free slots, plus a little that will start in a moment.

The buffer beyond the slots holds at most 100 ms of work at the measured handler rate, and only the part that will
start before the next claim counts as started: a worker that dies burns no attempt of a job it never ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ropewalk.definitions.context.attempt_port import Cancellation
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.order import TenantQueue
from ropewalk.domain.jobs.quarantine import Suspects
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.tickets import TicketRange, remembered
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
HOARD_SECONDS: Final = 1.0


class Claimer:
    def __init__(
        self,
        worker_context: WorkerContext,
        buffer: Buffer,
        executor: Executor,
        settler: Settler,
        regime: WorkerPolicies,
        *,
        queues: tuple[str, ...] | None,
        tenants: tuple[str, ...] | None,
        poll_seconds: float,
    ) -> None:
        self._worker_context = worker_context
        self._buffer = buffer
        self._executor = executor
        self._settler = settler
        self._regime = regime
        self._queues = queues
        self._tenants = tenants
        self._poll_seconds = poll_seconds
        self._types = worker_context.leases()
        self._wake = Wake(worker_context.runtime)
        self._ended = Wake(worker_context.runtime)
        self._stopping = False
        self._ticket = 0
        """The last ticket that was asked for: numbers up to it are never asked for again."""
        self._unanswered: tuple[TicketRange, ...] = ()
        """Tickets of claims that failed and may have leased something; the store has not heard of them yet."""
        self.ended = Signal()
        """Fired when the loop has stopped and the store has every job back that this worker does not know of."""
        self.over = False
        """Whether that has happened."""
        self.turn = 0
        """Number of claims sent."""
        self.answered_turn = 0
        """Number of the last claim that was answered."""
        self._held_up: TenantQueue | None = None
        """where a job is next that only a free slot may take: nothing more is claimed without one"""
        self._gave_back = False
        """what was kept at hand took too long to start: nothing more is, until a slot is free"""
        self.last_poll_at: float | None = None
        """monotonic time of the last successful claim: what readiness is judged by"""
        self.claims = 0
        self._last_claim = 0
        self.holds_off = False
        """its backpressure keeps it from polling"""
        self.last_was_empty = False
        """The last claim brought nothing, and nothing was held here that kept it from asking for all there is:
        at most items of batches that are not full."""
        self.on_consequences: Callable[[Consequences], object] = lambda _: None
        self.on_claimed: Callable[[], object] = lambda: None

    @property
    def has_free_slot(self) -> bool:
        return not self._stopping and self._free_slots() > 0

    def nudge(self) -> None:
        """A slot came free or work may be there: look now."""
        self._wake.set()

    def hint(self, hint: Hint) -> None:
        """From any thread: somebody queued something."""
        if hint.many or hint.control or self._serves(hint.ready):
            self._wake.set_threadsafe()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        self._ended.set()

    async def run(self) -> None:
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
            if self._regime.pressure is not None:
                await self._hold_off(self._regime.pressure)
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
        """Before every poll. What is here already starts meanwhile, or is given back where it would wait for long."""
        load = Load(
            slots=self._executor.slots,
            running=len(self._buffer.running),
            buffered=len(self._buffer),
            settled=self._settler.settled,
            failed=self._executor.failed,
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
        regime, slots = self._regime, self._free_slots()
        ahead = self._executor.work_in(AHEAD_SECONDS, self._executor.slots)
        ask = self._plain_ask(wanted) if regime.admission is None else regime.admission.ask(wanted)
        last_ticket = self._ticket
        permit = self._buffer.permit(self._buffer.idle_runners + ahead, last_ticket)
        self.turn += 1
        at_rest = len(self._worker_context.held) == self._executor.batches.gathered
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
                passing=ask.passing,
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
        if ask.limit:  # one that only permits starts looks at no line
            self._held_up = claimed.held_up
        self.last_poll_at = self._worker_context.runtime.monotonic()
        self.claims += 1
        self.answered_turn = self.turn
        self._last_claim = len(claimed.jobs)
        self.last_was_empty = not claimed.jobs and wanted > 0 and at_rest
        if self._worker_context.events.meter is not None:
            self._worker_context.events.meter.claimed(len(claimed.jobs))
        self._accept(claimed, permit.upto)
        if regime.alarm is not None and ask.limit:
            regime.alarm.saw(claimed, filled=len(claimed.jobs) == ask.limit)
        if claimed.moved or claimed.closed or claimed.passed_over:
            moved, closed, passed_over = claimed.moved, claimed.closed, claimed.passed_over
            self.on_consequences(Consequences(moved=moved, closed=closed, passed_over=passed_over))
        self.on_claimed()
        return claimed

    async def _answered(self, request: ClaimRequest) -> Claimed:
        """The answer to a claim.

        Without one, nobody here knows which jobs are leased under the tickets it asked for. Those are not used again,
        and the next claim gives back what they stand for.
        """
        first, known = request.first_ticket, self._unanswered
        self._ticket = first - 1 + request.limit
        if request.limit:
            self._unanswered = remembered(known, [TicketRange(first, self._ticket)])
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
        if self._regime.admission is not None:
            attempts = self._regime.admission.admit(attempts)
        self._buffer.put(attempts, started_upto=upto)

    async def _rest(self, claimed: Claimed) -> None:
        """Nothing more to claim: sleep until a hint, the poll, or the next job that comes due."""
        seconds = self._poll_seconds
        if claimed.next_due is not None:
            seconds = min(seconds, max(0.001, (claimed.next_due - claimed.now) / SECOND))
        if self._regime.admission is not None and (room_in := self._regime.admission.room_in_seconds()) is not None:
            seconds = min(seconds, max(0.001, room_in))
        await self._wake.wait(seconds)

    def _give_back_what_waits(self) -> None:
        """Handlers turned out slower than measured: what waits here for long is better off with an idle worker."""
        oldest = self._buffer.oldest
        if oldest is not None and oldest.since_claim() > HOARD_SECONDS:
            self._give_back(self._buffer.take_all())

    def _give_back(self, attempts: list[Attempt]) -> None:
        self._gave_back = True
        self._settler.release(attempts)

    def _wanted(self) -> int:
        """How many to claim now: at once for free slots, else when it is worth it, so that claims stay large."""
        if self._regime.free_slots is not None:
            self._executor.keep_free(self._regime.free_slots)
        idle, free, target = self._buffer.idle_runners, self._free_slots(), self._target()
        if free:
            self._gave_back = False
        missing = target - (len(self._buffer) + self._executor.slots - idle)
        patient = self._gave_back or self._held_up is not None or missing < _refill(target)
        if missing <= 0 or (free == 0 and patient):
            return 0
        return missing

    def _target(self) -> int:
        """How many jobs to have here, running and buffered."""
        slots = self._executor.slots
        return slots + max(self._regime.ahead, self._executor.work_in(BUFFER_SECONDS, slots))

    def _plain_ask(self, wanted: int) -> Ask:
        return Ask(wanted, self._types, {}, self._worker_context.misfits.passing())

    def _free_slots(self) -> int:
        """Those that nothing here is for."""
        return max(0, self._buffer.idle_runners - len(self._buffer))

    def _serves(self, queues: tuple[str, ...]) -> bool:
        return bool(queues) and (self._queues is None or not set(queues).isdisjoint(self._queues))


def _refill(target: int) -> int:
    """The least number worth a claim while every runner is busy."""
    return target // 3


def leased(jobs: Iterable[JobRecord], worker_context: WorkerContext) -> list[Attempt]:
    """Claimed jobs as attempts held by this worker."""
    now, type_of = worker_context.runtime.monotonic(), worker_context.registry.get
    attempts = [Attempt(job, type_of(job.type), worker_context, now) for job in jobs]
    for attempt in attempts:
        worker_context.hold(attempt)
        if attempt.job.cancel is not None:  # noted between its last attempt and this claim
            attempt.notice(Cancellation(LossReason.CANCELLED, attempt.job.cancel.reason))
    return attempts
