"""Looking at what is between jobs: groups and their values, chains, dependencies. Nothing here writes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ropewalk.backends.sql import records
from ropewalk.backends.sql.edges import edges_of
from ropewalk.backends.sql.rows import Pieces, load
from ropewalk.backends.sql.steps import READ_AT_ONCE_MAX
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.ports.store.messages import Dependency, GroupRecord, Kept

_ints = msgspec.json.Decoder(list[int])
_groups = msgspec.json.Decoder(list[GroupRecord])
_kept = msgspec.json.Decoder(list[tuple[int, str, int | None]])


def groups(tx: Tx, tenant: str, ids: Sequence[str]) -> dict[str, GroupRecord]:
    wanted = msgspec.json.encode(list(dict.fromkeys(ids))).decode()
    return {group.id: group for group in _groups.decode(tx.value(tx.sql.groups, (wanted, tenant)))}


def contributions(tx: Tx, tenant: str, group_id: str) -> list[Kept]:
    """In the order they were folded."""
    root: int | None = tx.value(tx.sql.root_of_group, (group_id, tenant))
    kept: list[Kept] = []
    after = 0
    while root is not None:
        found = tx.row(tx.sql.contributions_of, (root, after, READ_AT_ONCE_MAX))
        assert found is not None
        rows, values = _kept.decode(found[0]), Pieces(found[1] or b"")
        kept += [Kept(type=job_type, value=None if size is None else values.take(size)) for _, job_type, size in rows]
        if len(rows) < READ_AT_ONCE_MAX:
            break
        after = rows[-1][0]
    return kept


def chain(tx: Tx, tenant: str, job_id: str, last: int | None) -> list[JobRecord]:
    job = records.find(tx, tenant, job_id)
    if job is None or job.chain_id is None:
        return [] if job is None else [job]
    limit = -1 if last is None else last  # as SQLite says "all"
    return load(tx, _ints.decode(tx.value(tx.sql.chain_of, (job.chain_id, tenant, limit)))[::-1])


def dependencies(tx: Tx, seq: int) -> list[Dependency]:
    behind = _ints.decode(tx.value(tx.sql.tails_of_edges, (seq,)))
    jobs = {job.seq: job for job in load(tx, list(dict.fromkeys(behind)))}
    return [Dependency(edge=edge, job=jobs.get(at)) for edge, at in zip(edges_of(tx, [seq]), behind, strict=True)]
