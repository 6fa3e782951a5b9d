"""What the holder of a lease writes: renewals, notes, log lines and the end of the attempt. Every verb checks the fence
of the lease. Only the newest log lines of a job are kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from msgspec import structs

from ropewalk.backends.memory.tables import Tables, Worker, copied
from ropewalk.backends.memory.unit_of_work import Change
from ropewalk.backends.workflow.completion import PreparedPlan
from ropewalk.domain.jobs import lease, transition
from ropewalk.domain.jobs.flags import settles_alone
from ropewalk.domain.jobs.lease import LossReason, loss_reason
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.logs import LINES_MAX, LogLine
from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.completion import leaves_only_a_result
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.leases import (
    CancelNotice,
    Lost,
    Note,
    NoteAnswer,
    Renewal,
    Renewed,
    Settled,
    Settlements,
    WorkerCard,
)


def write_lines(tables: Tables, seq: int, fence: int, lines: Sequence[LogLine]) -> None:
    """Stores log lines of a job, each of them once."""
    kept = tables.lines.setdefault(seq, {})
    for line in lines:
        kept.setdefault((fence, line.position), line)
    for oldest in list(islice(kept, max(0, len(kept) - LINES_MAX))):
        del kept[oldest]


def lines_of(tables: Tables, tenant: str, job_id: str) -> list[LogLine]:
    """Returns the log lines of a job."""
    job = tables.find(tenant, job_id)
    return [] if job is None else list(tables.lines.get(job.seq, {}).values())


def register(tables: Tables, card: WorkerCard, now: Instant) -> None:
    known = tables.workers.get(card.id)
    if known is None:
        tables.workers[card.id] = Worker(structs.replace(card, started_at=now, beat_at=now))
    else:
        kept = known.card
        known.card = structs.replace(card, started_at=kept.started_at, beat_at=now, draining=kept.draining)


def drain(tables: Tables, owner: str) -> bool:
    worker = tables.workers.get(owner)
    if worker is None:
        return False
    worker.card = structs.replace(worker.card, draining=True)
    return True


def renew(tables: Tables, owner: str, renewals: Sequence[Renewal], now: Instant) -> Renewed:
    worker = tables.workers.get(owner)
    if worker is not None:
        worker.card = structs.replace(worker.card, beat_at=now)
    lost: list[Lost] = []
    cancels: list[CancelNotice] = []
    for asked in renewals:
        job = tables.jobs.get(asked.seq)
        reason = loss_reason(job, asked.fence, owner)
        if job is None or reason is not None:
            lost.append(Lost(seq=asked.seq, fence=asked.fence, reason=reason or LossReason.NOT_FOUND))
            continue
        lease.renew(job, lease_us=asked.lease_us, now=now)
        lease.note(job, checkpoint=None, progress=asked.progress, now=now)
        if asked.lines:
            write_lines(tables, asked.seq, asked.fence, asked.lines)
        tables.leases.changed(job)
        if (notice := CancelNotice.of(job)) is not None:
            cancels.append(notice)
    return Renewed(lost=lost, cancels=cancels, drain=worker is not None and worker.card.draining)


def settle(tables: Tables, owner: str, settlements: Sequence[Settlement], now: Instant) -> Settlements:
    """Settles attempts, independently of one another."""
    settling = Settling(tables, owner, now)
    settled = [settling.settle(asked) for asked in settlements]
    for asked, answer in zip(settlements, settled, strict=True):
        if asked.lines and answer.move is not None:
            write_lines(tables, asked.seq, asked.fence, asked.lines)
    return Settlements(settled=settled, consequences=settling.end())


class Settling:
    """The settlements of one call, and what follows from all of them together."""

    def __init__(self, tables: Tables, owner: str, now: Instant) -> None:
        self._tables = tables
        self._owner = owner
        self._now = now
        self._change: Change | None = None

    def settle(self, asked: Settlement) -> Settled:
        job = self._tables.jobs.get(asked.seq)
        reason = loss_reason(job, asked.fence, self._owner)
        if job is None or reason is not None:
            return Settled(seq=asked.seq, fence=asked.fence, lost=reason)
        if asked.move is Move.COMPLETE:
            if settles_alone(job.flags) and leaves_only_a_result(asked.plan):
                return self._complete_alone(job, asked)
            return self._complete(job, asked)
        return self._end_otherwise(job, asked)

    def end(self) -> Consequences:
        return Consequences() if self._change is None else self._change.end()

    def _complete_alone(self, job: JobRecord, asked: Settlement) -> Settled:
        """Completes a job that concerns no other job, which is the usual case."""
        self._tables.leases.remove(job)
        effects = transition.settle(job, asked, self._now)
        self._tables.counts.moved(job, effects, self._now)
        self._tables.finished.add(job)
        return Settled(seq=asked.seq, fence=asked.fence, move=Move.COMPLETE)

    def _complete(self, job: JobRecord, asked: Settlement) -> Settled:
        """Completes a job of which other jobs or a group may have to know."""
        change = self._begun()
        prepared = None if asked.plan is None else PreparedPlan(change.unit_of_work, job, asked.plan)
        refused = None if prepared is None else prepared.refusal()
        if refused is not None:
            return Settled(seq=asked.seq, fence=asked.fence, refused=refused)
        change.unit_of_work.take(job)
        effects = transition.settle(job, asked, self._now)
        if prepared is not None:
            prepared.write(change.propagation)
        change.propagation.ended(job, effects, continued=prepared is not None and prepared.continues)
        return Settled(seq=asked.seq, fence=asked.fence, move=effects.move)

    def _end_otherwise(self, job: JobRecord, asked: Settlement) -> Settled:
        """Settles an attempt that did not complete its job."""
        change = self._begun()
        change.unit_of_work.take(job)
        effects = transition.settle(job, asked, self._now, signal_arrived=self._signal_arrived(asked))
        if effects.move is Move.SUSPEND:
            self._keep_wait(asked)
        if job.terminal:
            change.propagation.ended(job, effects)
        else:
            change.unit_of_work.record(job, effects)
        return Settled(seq=asked.seq, fence=asked.fence, job=copied(job), move=effects.move)

    def _begun(self) -> Change:
        if self._change is None:
            self._change = Change(self._tables, self._now)
        return self._change

    def _signal_arrived(self, asked: Settlement) -> bool:
        signal = None if asked.suspension is None else asked.suspension.signal
        return signal is not None and self._tables.steps.has_signal(asked.seq, signal)

    def _keep_wait(self, asked: Settlement) -> None:
        """Records where the handler waits and until when. A wait that goes on keeps its first end, unless the clock was
        set back since."""
        if asked.suspension is None:
            return
        step = asked.suspension.step_at(self._now)
        held = self._tables.steps.at(asked.seq, step.position)
        if held is None:
            self._tables.steps.put(asked.seq, step)
        elif not held.finished and step.until is not None and held.until is not None and step.until < held.until:
            self._tables.steps.put(asked.seq, structs.replace(held, until=step.until))


def note(tables: Tables, written: Note, now: Instant) -> NoteAnswer:
    holder = written.holder
    job = tables.jobs.get(holder.seq)
    reason = loss_reason(job, holder.fence, holder.owner)
    if job is None or reason is not None:
        return NoteAnswer(lost=reason)
    lease.note(job, checkpoint=written.checkpoint, progress=written.progress, now=now)
    return NoteAnswer(cancel=CancelNotice.of(job))
