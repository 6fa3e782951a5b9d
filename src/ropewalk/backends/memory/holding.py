"""What the holder of a lease writes: renewals, notes and the end of the attempt. Everything here is fenced."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from ropewalk.backends.memory.tables import Tables, Worker, copied
from ropewalk.domain import lease, transition
from ropewalk.domain.instants import Instant
from ropewalk.domain.lease import LossReason, loss_reason
from ropewalk.domain.states import Move
from ropewalk.domain.transition import Settlement
from ropewalk.ports.exchange import CancelNotice, Lost, Note, Noted, Renewal, Renewed, Settled, WorkerCard


def enlist(tables: Tables, card: WorkerCard, now: Instant) -> None:
    known = tables.workers.get(card.id)
    if known is None:
        tables.workers[card.id] = Worker(structs.replace(card, started_at=now, beat_at=now))
    else:
        known.card = structs.replace(card, started_at=known.card.started_at, beat_at=now)


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
        tables.leases.changed(job)
        if (notice := CancelNotice.of(job)) is not None:
            cancels.append(notice)
    return Renewed(lost=lost, cancels=cancels)


def settle(tables: Tables, owner: str, asked: Settlement, now: Instant) -> Settled:
    job = tables.jobs.get(asked.seq)
    reason = loss_reason(job, asked.fence, owner)
    if job is None or reason is not None:
        return Settled(seq=asked.seq, fence=asked.fence, lost=reason)
    tables.take_up(job)
    effects = transition.settle(job, asked, now)
    tables.write(job, effects, now)
    seen = None if effects.move is Move.COMPLETE else copied(job)
    return Settled(seq=asked.seq, fence=asked.fence, job=seen, move=effects.move)


def note(tables: Tables, written: Note, now: Instant) -> Noted:
    holder = written.holder
    job = tables.jobs.get(holder.seq)
    reason = loss_reason(job, holder.fence, holder.owner)
    if job is None or reason is not None:
        return Noted(lost=reason)
    lease.note(job, checkpoint=written.checkpoint, progress=written.progress, now=now)
    return Noted(cancel=CancelNotice.of(job))
