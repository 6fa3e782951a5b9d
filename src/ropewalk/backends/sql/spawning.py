"""Many children of one kind under a running job: one statement writes them, and the scope counts them once.

That they are new is found out by writing them. Where one is there already, or they are not of one kind, the long way
(dependent_submission.py) tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from ropewalk.backends.sql import records
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.tx import AlreadyThere, Tx
from ropewalk.backends.sql.unit_of_work import SqlLedger
from ropewalk.backends.workflow.membership import owned_scope, root_scope, scope_of
from ropewalk.domain.jobs.flags import GROUPED
from ropewalk.domain.jobs.record import JobRecord, NewJob, new_record
from ropewalk.domain.workflow.scope import join
from ropewalk.ports.store.messages import Accepted

_OWN = frozenset({"id", "input", "spawn_key"})
_but_own = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in _OWN))


def spawn_alike(
    tx: Tx, lanes: LaneBook, ledger: SqlLedger, owner: JobRecord, jobs: Sequence[NewJob]
) -> list[Accepted] | None:
    """None: nothing was written, this is no case for it."""
    keys = [new.spawn_key for new in jobs if new.spawn_key is not None]
    if not jobs or len(keys) < len(jobs) or not _are_alike(jobs) or _is_cancelled(ledger, owner):
        return None
    ledger.flush()  # what this transaction inserted counts, too
    try:
        with tx.savepoint():
            first = _insert(tx, lanes, owner, jobs, keys)
    except AlreadyThere:
        lanes.forget()
        return None
    join(scope_of(ledger, owner), len(jobs))
    state, run_at, group_id = first.state_at(tx.now), first.run_at, first.group_id or owner.id
    return [Accepted(id=new.id, duplicate=False, state=state, run_at=run_at, group_id=group_id) for new in jobs]


def _are_alike(jobs: Sequence[NewJob]) -> bool:
    first = jobs[0]
    if first.key is not None or first.gate is not None:
        return False
    shared = list(map(_but_own, jobs))
    return shared.count(shared[0]) == len(shared)


def _is_cancelled(ledger: SqlLedger, owner: JobRecord) -> bool:
    scope = owned_scope(ledger, owner) or root_scope(ledger, owner)
    return scope is not None and scope.cancel is not None


def _insert(tx: Tx, lanes: LaneBook, owner: JobRecord, jobs: Sequence[NewJob], keys: Sequence[str]) -> JobRecord:
    """One record stands for all of them."""
    seqs = tx.take_seqs(len(jobs))
    first = new_record(jobs[0], seq=seqs[0], now=tx.now)
    first.scope_id, first.group_id = owner.seq, owner.group_id or owner.id
    first.flags |= GROUPED
    own = [(seq, new.id, new.input) for seq, new in zip(seqs, jobs, strict=True)]
    records.insert_alike(tx, lanes, first, own, keys)
    return first
