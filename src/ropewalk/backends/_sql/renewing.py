"""Leases renewed. Only what a renewal needs is looked at, and a job that somebody is writing to just now is left out:
one row locked by a slow transaction must not cost the others their leases."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from ropewalk.backends._sql import logs
from ropewalk.backends._sql.columns import json_text
from ropewalk.backends._sql.tx import Row, Tx
from ropewalk.domain import lease
from ropewalk.domain.job import CancelRequest
from ropewalk.domain.lease import loss_reason
from ropewalk.domain.states import TERMINAL, Status
from ropewalk.ports.exchange import CancelNotice, Lost, Renewal, Renewed


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


_held = msgspec.json.Decoder(list[Held])
_seen = msgspec.json.Decoder(list[Seen])


def renew(tx: Tx, owner: str, renewals: Sequence[Renewal]) -> Renewed:
    tx.run(tx.sql.beat, (tx.now, owner))
    found = tx.value(tx.sql.leases_to_renew, (_json([asked.seq for asked in renewals]), owner))
    held = {each.seq: each for each in _held.decode(found)}
    kept: list[Renewal] = []
    missing: list[Renewal] = []
    for asked in renewals:
        (kept if asked.seq in held and held[asked.seq].fence == asked.fence else missing).append(asked)
    tx.run_rows(tx.sql.renew_leases, [_row(tx, asked) for asked in kept], owner)
    logs.keep(tx, kept)
    cancels = [
        CancelNotice(seq=each.seq, fence=each.fence, reason=each.cancel.reason, force=each.cancel.force)
        for each in (held[asked.seq] for asked in kept)
        if each.cancel is not None
    ]
    answer = Renewed(lost=[], cancels=cancels)
    if missing:
        _explain(tx, owner, missing, answer)
    return answer


def _row(tx: Tx, asked: Renewal) -> Row:
    progress = None if asked.progress is None else json_text(lease.noted(asked.progress, tx.now))
    return asked.seq, asked.fence, lease.expiry(asked.lease_us, tx.now), progress


def _explain(tx: Tx, owner: str, missing: Sequence[Renewal], answer: Renewed) -> None:
    """What is still held was only locked; the rest is lost."""
    found = tx.value(tx.sql.standing_of, (_json([asked.seq for asked in missing]),))
    seen = {each.seq: each for each in _seen.decode(found)}
    for asked in missing:
        reason = loss_reason(seen.get(asked.seq), asked.fence, owner)
        if reason is None:
            answer.busy.append(asked.seq)
        else:
            answer.lost.append(Lost(seq=asked.seq, fence=asked.fence, reason=reason))


def _json(seqs: Sequence[int]) -> str:
    return msgspec.json.encode(seqs).decode()
