"""What the holder of a lease writes while it holds it: renewals and notes. Everything here is fenced.

Only what a renewal needs is looked at, and a job that somebody is writing to just now is left out: one row locked by a
slow transaction must not cost the others their leases.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from ropewalk.backends.sql import logs
from ropewalk.backends.sql.damage import Rows
from ropewalk.backends.sql.rows import json_text, load
from ropewalk.backends.sql.tx import Row, Tx
from ropewalk.domain.jobs import lease
from ropewalk.domain.jobs.lease import LossReason, loss_reason
from ropewalk.domain.jobs.record import CancelRequest
from ropewalk.domain.jobs.states import TERMINAL, Status
from ropewalk.ports.store.leases import CancelNotice, Lost, Note, NoteAnswer, Renewal, Renewed, WorkerCard


class Held(Struct, array_like=True):
    seq: int
    fence: int
    cancel: CancelRequest | None


class Seen(Struct, array_like=True):
    """Of a job that was not to be had: enough to tell why."""

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
    drain = tx.value(tx.sql.beat, (tx.now, owner)) == 1
    found = tx.value(tx.sql.leases_to_renew, (_json([asked.seq for asked in renewals]), owner))
    held = {each.seq: each for each in _held.decode(tx, found)}
    kept: list[Renewal] = []
    missing: list[Renewal] = []
    for asked in renewals:
        (kept if asked.seq in held and held[asked.seq].fence == asked.fence else missing).append(asked)
    tx.run_rows(tx.sql.renew_leases, _rows(tx, kept), owner)
    logs.keep(tx, kept)
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
    """Why this lease is not held any more, without waiting for anybody; None while it is."""
    return loss_reason(_look(tx, [seq]).get(seq), fence, owner)


def _rows(tx: Tx, kept: Sequence[Renewal]) -> list[Row]:
    """One a job: of one renewed twice a statement would write only the last, without the progress of the other."""
    progress: dict[int, str | None] = {}
    rows: dict[int, Row] = {}
    for asked in kept:
        if asked.progress is not None:
            progress[asked.seq] = json_text(lease.noted(asked.progress, tx.now))
        expiry = lease.expiry(asked.lease_us, tx.now)
        rows[asked.seq] = (asked.seq, asked.fence, expiry, progress.get(asked.seq))
    return list(rows.values())


def _explain(tx: Tx, owner: str, missing: Sequence[Renewal], answer: Renewed) -> None:
    """What is still held was only locked; the rest is lost."""
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
    serves = (json_text(card.types) or "[]", _names(card.queues), _names(card.tenants))
    values = (card.id, card.host, card.pid, *serves, card.concurrency, tx.now, tx.now, card.lease_us)
    tx.run(tx.sql.register_worker, values)


def note(tx: Tx, written: Note) -> NoteAnswer:
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
    """() serves nothing and None serves all: they must not be the same in the table."""
    return None if served is None else msgspec.json.encode(served).decode()
