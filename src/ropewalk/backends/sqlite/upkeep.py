"""What is done for all: leases that ran out, deadlines that passed, retention, once-keys, pauses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ropewalk.backends.sqlite.changes import Changes
from ropewalk.backends.sqlite.lanes import LaneBook
from ropewalk.backends.sqlite.rows import load
from ropewalk.backends.sqlite.statements import SQL
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.domain import transition
from ropewalk.domain.instants import DAY, Instant, Span
from ropewalk.domain.retention import Retention, keep_for
from ropewalk.domain.states import TERMINAL
from ropewalk.ports.exchange import Moved, Pruned

FREE_PAGES_KEPT: Final = 1000
PAGES_GIVEN_BACK: Final = 500

_ints = msgspec.json.Decoder(list[int])
_names = msgspec.json.Decoder(list[str])
_upto = msgspec.json.Decoder(dict[str, int])
_results = msgspec.json.Decoder(list[tuple[int, Instant]])


def sweep(tx: Tx, lanes: LaneBook, limit: int) -> list[Moved]:
    return take_back(tx, lanes, limit) + _expire(tx, lanes, limit)


def take_back(tx: Tx, lanes: LaneBook, limit: int) -> list[Moved]:
    """Leases that ran out."""
    seqs = _ints.decode(tx.value(SQL.leases_run_out, (tx.now, limit)))
    if not seqs:
        return []
    started_upto = _upto.decode(tx.value(SQL.started_upto))
    changes = Changes(tx, lanes)
    moved: list[Moved] = []
    for job in load(tx, seqs):
        # A job a living worker had only buffered goes back unharmed; of an unknown worker we must assume the worst.
        upto = started_upto.get(job.owner or "")
        effects = transition.lose(job, started=upto is None or job.ticket <= upto, now=tx.now)
        changes.moved(job, effects)
        moved.append(Moved(job=job, move=effects.move))
    changes.write()
    return moved


def _expire(tx: Tx, lanes: LaneBook, limit: int) -> list[Moved]:
    """Waiting jobs whose deadline passed."""
    changes = Changes(tx, lanes)
    moved: list[Moved] = []
    for job in load(tx, _ints.decode(tx.value(SQL.past_deadline, (tx.now, limit)))):
        effects = transition.expire(job, tx.now)
        changes.moved(job, effects)
        moved.append(Moved(job=job, move=effects.move))
    changes.write()
    return moved


def prune(tx: Tx, retention: Retention, limit: int) -> Pruned:
    types = _names.decode(tx.value(SQL.types))
    gone = _past_retention(tx, retention, types, limit)
    remove(tx, gone)
    results = 0
    if retention.results_us is not None:
        results = _forget_results(tx, types, tx.now - retention.results_us, limit)
    forgotten = tx.run(SQL.prune_keys, (tx.now, limit))
    tx.run(SQL.prune_once, (tx.now, limit))
    tx.run(SQL.prune_workers, (tx.now - DAY,))
    _give_back_space(tx)
    return Pruned(jobs=len(gone), results=results, keys=forgotten)


def remove(tx: Tx, seqs: Sequence[int]) -> None:
    """Forget finished jobs and everything recorded about them."""
    gone = msgspec.json.encode(seqs).decode()
    for sql in (SQL.delete_keys_of, SQL.delete_attempts, SQL.delete_events, SQL.delete_jobs):
        tx.run(sql, (gone,))


def once(tx: Tx, tenant: str, key: str, ttl_us: Span) -> bool:
    return tx.run(SQL.take_once, (tenant, key, tx.now + ttl_us, tx.now)) == 1


def pause(tx: Tx, tenant: str, queue: str, *, paused: bool) -> None:
    if tx.run(SQL.set_paused, (tenant, queue, int(paused))):
        tx.run(SQL.bump_control)


def _past_retention(tx: Tx, retention: Retention, types: Sequence[str], limit: int) -> list[int]:
    """Each (status, type) has a retention of its own, and an index that holds its oldest jobs first."""
    gone: list[int] = []
    for status in sorted(TERMINAL):
        for job_type in types:
            span = keep_for(retention, status, job_type)
            if span is not None and len(gone) < limit:
                wanted = (status.value, job_type, tx.now - span, tx.now, limit - len(gone))
                gone += _ints.decode(tx.value(SQL.past_retention, wanted))
    return gone


def _forget_results(tx: Tx, types: Sequence[str], before: Instant, limit: int) -> int:
    forgotten = 0
    for job_type in types:
        upto = tx.value(SQL.results_upto, (job_type,))
        room = limit - forgotten
        old = _results.decode(tx.value(SQL.old_results, (job_type, upto, before, room)))
        if old:
            tx.run(SQL.forget_results, (msgspec.json.encode([seq for seq, _ in old]).decode(),))
            forgotten += len(old)
        seen = before if len(old) < room else old[-1][1] if old else upto
        if seen > upto:
            tx.run(SQL.note_forgotten, (job_type, seen))
    return forgotten


def _give_back_space(tx: Tx) -> None:
    """Shrink the file by a little where much of it is empty; what is only about to be reused stays."""
    space = tx.row(SQL.space)
    assert space is not None
    free_pages, pages = space
    if free_pages > FREE_PAGES_KEPT and free_pages * 4 > pages:
        for _ in range(PAGES_GIVEN_BACK):
            tx.run("PRAGMA incremental_vacuum(1)")  # one by one: Python's own driver stops after the first of many
