"""What may be forgotten, and what is still needed by something that goes on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ropewalk.backends.memory.tables import Tables
from ropewalk.domain.jobs.flags import HAS_DEPENDANTS, OWNS_SCOPE
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.ports.store.messages import Deletion


def delete(tables: Tables, tenant: str, ids: Sequence[str]) -> dict[str, Deletion]:
    together = [job.seq for each in ids if (job := tables.find(tenant, each)) is not None]
    return {each: _delete(tables, tables.find(tenant, each), frozenset(together)) for each in dict.fromkeys(ids)}


def in_use(tables: Tables, job: JobRecord, together: Collection[int] = ()) -> bool:
    """Whether what was queued under it goes on, or a job depends on it that has not ended and is not in `together`."""
    if job.flags & OWNS_SCOPE and tables.groups.is_open(job.seq):
        return True
    return bool(job.flags & HAS_DEPENDANTS) and any(
        seq not in together and not tables.jobs[seq].terminal for seq in tables.edges.dependants(job.seq)
    )


def _delete(tables: Tables, job: JobRecord | None, together: Collection[int]) -> Deletion:
    if job is None:
        return Deletion.NOT_FOUND
    if not job.terminal:
        return Deletion.NOT_TERMINAL
    if in_use(tables, job, together):
        return Deletion.IN_USE
    tables.remove(job)
    return Deletion.DELETED
