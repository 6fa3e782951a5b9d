"""What a worker writes while it holds leases: its registration, renewals, and notes (progress and checkpoints).
Renewals and notes name the fence of the lease.

A renewal reads only the columns that it needs, and skips a job whose row another transaction has locked: a slow
transaction with one row must not cost the other jobs their leases.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from ropewalk.backends.sql import logs
from ropewalk.backends.sql.damage import Rows
from ropewalk.backends.sql.records import json_text, load
from ropewalk.backends.sql.tx import Row, Tx
from ropewalk.domain.jobs import lease
from ropewalk.domain.jobs.lease import LossReason, loss_reason
from ropewalk.domain.jobs.record import CancelRequest
from ropewalk.domain.jobs.states import TERMINAL, Status
from ropewalk.ports.store.leases import CancelNotice, Lost, Note, NoteAnswer, Renewal, Renewed, WorkerCard


class Held(Struct, array_like=True):
    """A job whose lease the worker still holds, as a renewal reads it."""

    seq: int
    fence: int
    cancel: CancelRequest | None


class Seen(Struct, array_like=True):
    """A job that could not be renewed: the columns that show whether its lease is lost, and why."""

    seq: int
    fence: int
    owner: str | None
    status: Status

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL


_held = Rows("job", Held)
_seen = Rows("job", Seen)


def renew(tx: Tx, owner: str, renewals: Sequence[Renewal]) -> Renewed:
    """Renews leases and writes progress and log lines. Returns lost leases, cancellations, and whether to drain."""
    drain = tx.value(tx.sql.beat, (tx.now, owner)) == 1
    found = tx.value(tx.sql.leases_to_renew, (_json([asked.seq for asked in renewals]), owner))
    held = {each.seq: each for each in _held.decode(tx, found)}
    kept: list[Renewal] = []
    missing: list[Renewal] = []
    for asked in renewals:
        (kept if asked.seq in held and held[asked.seq].fence == asked.fence else missing).append(asked)
    tx.run_rows(tx.sql.renew_leases, _rows(tx, kept), owner)
    logs.write(tx, kept)
    cancels = [
        CancelNotice(seq=each.seq, fence=each.fence, reason=each.cancel.reason, force=each.cancel.force)
        for each in (held[asked.seq] for asked in kept)
        if each.cancel is not None
    ]
    answer = Renewed(lost=[], cancels=cancels, drain=drain)
    if missing:
        _explain(tx, owner, missing, answer)
    return answer


def why_lost(tx: Tx, owner: str, seq: int, fence: int) -> LossReason | None:
    """Returns why this lease is lost, without waiting for a lock; None if it is not lost."""
    return loss_reason(_look(tx, [seq]).get(seq), fence, owner)


def _rows(tx: Tx, kept: Sequence[Renewal]) -> list[Row]:
    """Returns one row for each job. If a job is renewed twice, a statement would write only the last renewal, without
    the progress of the first."""
    progress: dict[int, str | None] = {}
    rows: dict[int, Row] = {}
    for asked in kept:
        if asked.progress is not None:
            progress[asked.seq] = json_text(lease.dated(asked.progress, tx.now))
        expiry = lease.expiry(asked.lease_us, tx.now)
        rows[asked.seq] = (asked.seq, asked.fence, expiry, progress.get(asked.seq))
    return list(rows.values())


def _explain(tx: Tx, owner: str, missing: Sequence[Renewal], answer: Renewed) -> None:
    """Adds the missing leases to the answer: as busy if another transaction had locked the job, otherwise as lost."""
    seen = _look(tx, [asked.seq for asked in missing])
    for asked in missing:
        reason = loss_reason(seen.get(asked.seq), asked.fence, owner)
        if reason is None:
            answer.busy.append(asked.seq)
        else:
            answer.lost.append(Lost(seq=asked.seq, fence=asked.fence, reason=reason))


def _look(tx: Tx, seqs: Sequence[int]) -> dict[int, Seen]:
    return {each.seq: each for each in _seen.decode(tx, tx.value(tx.sql.standing_of, (_json(seqs),)))}


def _json(seqs: Sequence[int]) -> str:
    return msgspec.json.encode(seqs).decode()


def register(tx: Tx, card: WorkerCard) -> None:
    """Records a worker, or what has changed about it."""
    serves = (json_text(card.types) or "[]", _names(card.queues), _names(card.tenants))
    values = (card.id, card.host, card.pid, *serves, card.concurrency, tx.now, tx.now, card.lease_us)
    tx.run(tx.sql.register_worker, values)


def note(tx: Tx, written: Note) -> NoteAnswer:
    """Writes the progress and the checkpoint of a running attempt."""
    holder = written.holder
    job = next(iter(load(tx, [holder.seq], tx.sql.load_to_note or None)), None)
    reason = loss_reason(job, holder.fence, holder.owner)
    if job is None or reason is not None:
        return NoteAnswer(lost=reason)
    lease.note(job, checkpoint=written.checkpoint, progress=written.progress, now=tx.now)
    values = (job.checkpoint, json_text(job.progress), job.seq, job.fence, job.owner)
    tx.run(tx.sql.write_note, values)
    return NoteAnswer(cancel=CancelNotice.of(job))


def _names(served: tuple[str, ...] | None) -> str | None:
    """Encodes the queues or tenants of a worker. () serves nothing and None serves all, so the table distinguishes
    them."""
    return None if served is None else msgspec.json.encode(served).decode()
