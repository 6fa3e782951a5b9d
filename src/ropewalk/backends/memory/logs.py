"""What jobs logged: written with a renewal or a settlement, once each, the newest of a job."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from ropewalk.backends.memory.tables import Tables
from ropewalk.domain.logs import LINES_MAX, LogLine


def keep(tables: Tables, seq: int, fence: int, lines: Sequence[LogLine]) -> None:
    kept = tables.lines.setdefault(seq, {})
    for line in lines:
        kept.setdefault((fence, line.position), line)
    for oldest in list(islice(kept, max(0, len(kept) - LINES_MAX))):
        del kept[oldest]


def lines_of(tables: Tables, tenant: str, job_id: str) -> list[LogLine]:
    job = tables.find(tenant, job_id)
    return [] if job is None else list(tables.lines.get(job.seq, {}).values())
