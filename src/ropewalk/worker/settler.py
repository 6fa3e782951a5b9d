"""The settler turns the outcomes of attempts into settlements, collects these for a moment, and writes them together:
hundreds in one round trip.

While slots are busy, a batch waits up to `linger_seconds`; it is sent at once when no more jobs are about to run. So an
idle worker adds no latency, and a busy one makes few commits. Until the store answers, the leases are renewed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import structs

from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.domain.jobs import retry
from ropewalk.domain.jobs.outcome import Aborted, Completed, Crashed, Errored, Misfit, Outcome, Released
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement, decide
from ropewalk.domain.time import SECOND, Span, to_delay
from ropewalk.domain.user_calls import guarded
from ropewalk.errors import InvalidInput, RopewalkError, StoreRefused, StoreUnavailable
from ropewalk.observe import tracing
from ropewalk.observe.events import EventHub
from ropewalk.observe.publish import NO_CONSEQUENCES, Change, publish
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.leases import Settled, Settlements
from ropewalk.runtime.wake import Signal, Wake
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.completion import Folding, refused_for_good, without_workflows, written_with
from ropewalk.worker.context import WorkerContext

BATCH_MAX: Final = 1024
"""One batch contains this many settlements at most."""
UNSETTLED_MAX: Final = 2048
"""Slots wait while this many settlements are pending."""
ALONE_TRIES_MAX: Final = 5
"""A settlement that fails alone is sent this many times, if the store is there and accepts others."""


class Settler:
    """Decides the settlements of one worker's attempts, and writes them in a loop."""

    def __init__(self, worker_context: WorkerContext, *, busy: Callable[[], bool]) -> None:
        self._worker_context = worker_context
        self._busy = busy
        """Whether more attempts are about to finish, so that it is worth waiting for them."""
        self._pending: list[tuple[Attempt, Settlement]] = []
        self._added = Wake(worker_context.runtime)
        """This is set when a settlement was added or the loop should end."""
        self.flushed = Signal()
        """This fires when the store has answered a batch."""
        self.full = False
        """Whether so many settlements are pending that slots have to wait before they run more jobs."""
        self._oldest_at = 0.0
        """The monotonic time since which the oldest pending settlement waits; the time of a flush counts, too."""
        self._closing = False
        self._in_flight = 0
        """The number of settlements in the batch that is being sent."""
        self._one_by_one = 0
        """This many of the next settlements are sent alone, because they failed together although the store was
        there."""
        self._failures: Counter[tuple[int, int]] = Counter()
        """How often each settlement failed alone."""
        self._folding = Folding(worker_context)
        self.settled = 0
        """The number of attempts that the store accepted as settled, however they ended."""
        self.failed = 0
        """The number of attempts that ended in an error."""
        self.flushes = 0
        """The number of settlement batches that the store answered."""
        self.settle_seconds: float | None = None
        """The seconds that the store took for its last answer."""
        self.on_settled: Callable[[], object] = lambda: None
        """This is called after each batch, because slots and leases have become free."""
        self.on_consequences: Callable[[Consequences], object] = lambda _: None
        """This is called with the consequences of a batch, after they were published."""

    @property
    def unsettled(self) -> int:
        """The number of settlements that the store has not answered."""
        return len(self._pending) + self._in_flight

    def settle(self, attempt: Attempt, outcome: Outcome) -> None:
        """Decides the settlement of an attempt by its outcome and adds it to the next batch, once for each attempt."""
        worker_context = self._worker_context
        if attempt.span is not None:
            span, attempt.span = attempt.span, None
            tracing.end_attempt_span(span, outcome, worker_context.events)
        if attempt.handed_over:
            return  # A thread that was given up has returned.
        attempt.handed_over = True
        if attempt.stopped is not None and attempt.gone:
            worker_context.drop(attempt)
            worker_context.events.emit_about(attempt.job, "lease_lost", message=attempt.stopped.reason.value)
            return
        if attempt.timing is None:  # The handler still runs in its thread.
            attempt.note_timing(attempt.elapsed())
        if worker_context.workflows is None:
            outcome = without_workflows(attempt, outcome, worker_context)
        if isinstance(outcome, Completed):
            self.put(attempt, decide(attempt.job, outcome, retry.BUILT_IN, 0.0, attempt.timing))
            return
        outcome = self._with_origin(attempt, outcome)
        outcome = with_custom_backoff(outcome, attempt.job, attempt.job_type, worker_context.events)
        backoff = retry.resolve(attempt.job.backoff, attempt.job_type.options.backoff, worker_context.defaults.backoff)
        self.put(attempt, decide(attempt.job, outcome, backoff, worker_context.runtime.random(), attempt.timing))

    def put(self, attempt: Attempt, settlement: Settlement) -> None:
        """Adds the settlement of an attempt to the next batch."""
        if not self._pending:
            self._oldest_at = self._worker_context.runtime.monotonic()
        self._pending.append((attempt, settlement))
        self.full = len(self._pending) >= UNSETTLED_MAX
        self._added.set()

    def release(self, attempts: Iterable[Attempt], *, after_us: Span = 0) -> None:
        """Gives back jobs that never started, so that they are ready again at once or after a delay."""
        for attempt in attempts:
            attempt.handed_over = True
            self.put(attempt, decide(attempt.job, Released(after_us), retry.BUILT_IN, 0.0))

    async def room(self) -> None:
        """Waits until fewer settlements are pending than slots have to wait for."""
        while self.full:
            await self.flushed.wait()

    async def run(self) -> None:
        """Settles in a loop, which ends after `close` when no settlement is left."""
        while not (self._closing and not self._pending):
            if not self._pending:
                await self._added.wait()
                continue
            if self._busy() and len(self._pending) < BATCH_MAX and not self._closing:
                await self._linger()
            await self._flush()

    def close(self) -> None:
        """Has `run` end once everything is settled."""
        self._closing = True
        self._added.set()

    async def _linger(self) -> None:
        """Waits for more settlements that can be sent together with the pending ones."""
        until = self._oldest_at + self._worker_context.linger_seconds
        while self._busy() and len(self._pending) < BATCH_MAX and not self._closing:
            left = until - self._worker_context.runtime.monotonic()
            if left <= 0 or not await self._added.wait(left):
                return

    async def _flush(self) -> None:
        """Sends one batch and records the answers."""
        size = 1 if self._one_by_one else BATCH_MAX
        batch, self._pending = self._pending[:size], self._pending[size:]
        self.full = len(self._pending) >= UNSETTLED_MAX
        self._in_flight = len(batch)
        try:
            if any(attempt.fold is not None for attempt, _ in batch):
                batch, later = await self._folding.fold(batch)
                self._pending = later + self._pending
            settlements = [each if attempt.log is None else attempt.with_lines(each) for attempt, each in batch]
            began = self._worker_context.runtime.monotonic()
            answers = await self._worker_context.store.settle(self._worker_context.owner, settlements)
            self.settle_seconds = self._worker_context.runtime.monotonic() - began
        except StoreUnavailable:
            # Nothing is lost, because the worker still holds the leases. The supervisor reports the error, waits, and
            # starts this loop again.
            self._pending = batch + self._pending
            raise
        except Exception as error:
            self._failed(batch, error)
            raise
        except BaseException:
            # The loop was cancelled, and the store may have settled the batch: it refuses to settle an attempt twice.
            self._pending = batch + self._pending
            raise
        finally:
            self._in_flight = 0
        self._one_by_one = max(0, self._one_by_one - 1)
        if self._failures:
            for attempt, _ in batch:
                self._failures.pop(attempt.key, None)
        self.flushes += 1
        self.report(batch, answers)
        self.flushed.fire()

    def _failed(self, batch: list[tuple[Attempt, Settlement]], error: Exception) -> None:
        """Decides what becomes of a batch after the store answered with an error.

        One settlement may be the reason, and must not keep the others from being written, so each of them is sent alone
        next. A completion whose jobs cannot be stored is settled as a failure at once. Any other settlement that keeps
        failing alone is given up together with its lease, and another worker runs the job when the lease has expired.
        """
        if isinstance(error, StoreRefused):
            self._pending = batch + self._pending
        elif len(batch) != 1:
            self._pending = batch + self._pending
            self._one_by_one = len(batch)
        else:
            [(attempt, settlement)] = batch
            if isinstance(error, InvalidInput) and settlement.plan is not None:
                self._failures.pop(attempt.key, None)
                self._settle_otherwise(attempt, settlement, error)
                return
            self._failures[attempt.key] += 1
            if self._failures[attempt.key] < ALONE_TRIES_MAX:
                self._pending.append((attempt, settlement))  # The others are tried before it.
                self._one_by_one = len(self._pending)
                return
            del self._failures[attempt.key]
            self._one_by_one = max(0, self._one_by_one - 1)
            self._worker_context.drop(attempt)
            self.flushed.fire()
            self.on_settled()

    def report(self, batch: list[tuple[Attempt, Settlement]], answers: Settlements) -> None:
        """Records the answers of the store, and publishes them to hooks and to everybody who waits for these jobs."""
        changes: list[Change] = []
        freed: set[str] = set()
        accepted: list[Attempt] = []
        queued: list[NewJob] = []
        for (attempt, settlement), answer in zip(batch, answers.settled, strict=True):
            if answer.refused is not None:
                self._settle_otherwise(attempt, settlement, answer.refused)
                continue
            self._worker_context.drop(attempt)
            if answer.move is None:
                self._refused(attempt, answer)
                continue
            accepted.append(attempt)
            if answer.job is None:
                changes.append(Change(attempt.job, answer.move, settlement.error))
            else:
                changes.append(settled_change(settlement, answer.move, answer.job))
            if attempt.limited:
                freed.add(attempt.job.queue)
            if settlement.plan is not None and answer.move is Move.COMPLETE:
                queued += written_with(settlement.plan)
        self.settled += len(changes)
        worker_context, consequences = self._worker_context, answers.consequences
        if worker_context.events.meter is not None:
            worker_context.events.meter.settled(accepted)
        publish(
            changes,
            store=worker_context.store,
            events=worker_context.events,
            runtime=worker_context.runtime,
            consequences=consequences,
            queued=queued,
            freed=freed,
        )
        if consequences != NO_CONSEQUENCES:
            self.on_consequences(consequences)
        self.on_settled()

    def _with_origin(self, attempt: Attempt, outcome: Outcome) -> Outcome:
        """Adds to the error of an outcome on which worker and host the handler ran, and for how long."""
        if isinstance(outcome, Errored | Aborted | Crashed | Misfit):
            self.failed += 1
            error = structs.replace(
                outcome.error,
                worker=self._worker_context.owner,
                host=self._worker_context.host,
                duration_us=round(attempt.elapsed() * SECOND),
            )
            return structs.replace(outcome, error=error)
        return outcome

    def _settle_otherwise(self, attempt: Attempt, settlement: Settlement, error: RopewalkError) -> None:
        """Settles an attempt in another way, because the store refused the jobs or the contribution that its completion
        brings. The worker still holds the lease."""
        if attempt.fold is None:
            settlement = refused_for_good(attempt, error, self._worker_context)
        else:
            attempt.fold.refused = error
        self.put(attempt, settlement)

    def _refused(self, attempt: Attempt, answer: Settled) -> None:
        """Records that the store refused a settlement because the lease is lost."""
        self._worker_context.refused += 1
        events = self._worker_context.events
        if events.meter is not None:
            events.meter.refused()
        events.emit_about(attempt.job, "lease_lost", message=None if answer.lost is None else answer.lost.value)


def with_custom_backoff(
    outcome: Outcome, job: JobRecord, job_type: JobType[..., Any, Any], events: EventHub
) -> Outcome:
    """Adds the delay by the backoff function of the type, if it has one and the job names no other backoff."""
    custom = job_type.options.custom_backoff
    if custom is None or job.backoff is not None:
        return outcome
    if not isinstance(outcome, Errored) or outcome.after_us is not None:
        return outcome
    try:
        after = guarded(lambda: to_delay(custom(job.attempt), "backoff"))
    except Exception as error:
        events.report(error, f"backoff of {job_type.name}")
        return outcome
    return structs.replace(outcome, after_us=after)


def settled_change(settlement: Settlement, move: Move, job: JobRecord) -> Change:
    """Returns the change to publish. A job that fails when its deadline leaves no time for a retry expires instead; the
    change then contains the error of the attempt, too."""
    expired_instead = move is Move.EXPIRE and settlement.move is not Move.EXPIRE
    return Change(job, move, job.error, attempt_error=settlement.error if expired_instead else None)
