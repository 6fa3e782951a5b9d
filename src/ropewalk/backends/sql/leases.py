"""What the holder of a lease writes: notes and the end of the attempt. Everything here is fenced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ropewalk.backends.sql import logs
from ropewalk.backends.sql.columns import json_text
from ropewalk.backends.sql.completion import Settling, complete, leaves_only_a_result
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.rows import load
from ropewalk.backends.sql.statistics import TallyBook
from ropewalk.backends.sql.tx import Row, Tx
from ropewalk.backends.sql.unit_of_work import SqlLedger
from ropewalk.backends.workflow.propagation import Rippling
from ropewalk.domain.jobs import lease
from ropewalk.domain.jobs.flags import SETTLES_ALONE
from ropewalk.domain.jobs.lease import loss_reason
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.ports.store.messages import CancelNotice, Note, Noted, Ripple, Settled, Settlements, WorkerCard

_COMPLETE: Final = Move.COMPLETE


def enlist(tx: Tx, card: WorkerCard) -> None:
    serves = (json_text(card.types) or "[]", _names(card.queues), _names(card.tenants))
    values = (card.id, card.host, card.pid, *serves, card.concurrency, tx.now, tx.now, card.lease_us)
    tx.run(tx.sql.enlist_worker, values)


def settle(tx: Tx, lanes: LaneBook, owner: str, settlements: Sequence[Settlement]) -> Settlements:
    """Plain completions are one statement for all of them; what concerns others is in completion.py."""
    answers = _complete_plain(tx, lanes, owner, settlements)
    if None not in answers:
        logs.keep(tx, settlements)
        return Settlements(settled=[answer for answer in answers if answer is not None], ripple=Ripple())
    ledger = SqlLedger(tx, lanes)
    rippling = Rippling(ledger)
    settling = Settling(tx, ledger, rippling, owner)
    settling.members(settlements, answers)
    ledger.load([asked.seq for asked, answer in zip(settlements, answers, strict=True) if answer is None])
    settled = [answer or settling.one(asked) for asked, answer in zip(settlements, answers, strict=True)]
    ripple = rippling.run()
    ledger.flush()
    logs.keep(tx, [asked for asked, answer in zip(settlements, settled, strict=True) if answer.move is not None])
    return Settlements(settled=settled, ripple=ripple)


def note(tx: Tx, written: Note) -> Noted:
    holder = written.holder
    job = next(iter(load(tx, [holder.seq])), None)
    reason = loss_reason(job, holder.fence, holder.owner)
    if job is None or reason is not None:
        return Noted(lost=reason)
    lease.note(job, checkpoint=written.checkpoint, progress=written.progress, now=tx.now)
    values = (job.checkpoint, json_text(job.progress), job.seq, job.fence, job.owner)
    tx.run(tx.sql.write_note, values)
    return Noted(cancel=CancelNotice.of(job))


def _complete_plain(tx: Tx, lanes: LaneBook, owner: str, settlements: Sequence[Settlement]) -> list[Settled | None]:
    """Settles completions that touch nothing but their own row; None where there is more to it."""
    seen: set[int] = set()
    plain: list[Settlement | None] = []
    rows: list[Row] = []
    for asked in settlements:
        seq, first = asked.seq, asked.seq not in seen
        seen.add(seq)
        # Of several settlements of one lease the first counts.
        if first and asked.move is _COMPLETE and leaves_only_a_result(asked.sequel):
            plain.append(asked)
            rows.append((seq, asked.fence, tx.blob(asked.result)))
        else:
            plain.append(None)
    completed = complete(tx, owner, rows, SETTLES_ALONE)
    tallies = TallyBook(tx, lanes)
    tallies.completed(completed, filter(None, plain))
    tallies.flush()
    done = set(completed.seqs)
    return [
        Settled(seq=asked.seq, fence=asked.fence, move=_COMPLETE) if asked is not None and asked.seq in done else None
        for asked in plain
    ]


def _names(served: tuple[str, ...] | None) -> str | None:
    """() serves nothing and None serves all: they must not be the same in the table."""
    return None if served is None else msgspec.json.encode(served).decode()
