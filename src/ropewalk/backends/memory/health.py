"""How the jobs of all tenants stand, for an examination."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from ropewalk.backends.memory.tables import Tables
from ropewalk.domain.flow_limit import LaneName
from ropewalk.domain.instants import Instant
from ropewalk.domain.job import RECORD_FORMAT
from ropewalk.domain.states import Status
from ropewalk.ports.health import Backlog, Work


def work(tables: Tables, now: Instant) -> Work:
    live = [*chain.from_iterable(map(tables.lanes.waiting, tables.tenants)), *tables.leases]
    ready: dict[LaneName, list[Instant]] = {}
    for job in live:
        if job.ready_at(now):
            ready.setdefault(job.lane.above, []).append(job.run_at)
    over = [at for job in tables.leases if (at := job.lease_expires_at) is not None and at <= now]
    dead = Counter(job.type for job in tables.jobs.values() if job.status is Status.DEAD_LETTER)
    return Work(
        backlog=[
            Backlog(lane=lane, ready=len(times), oldest_ready_at=min(times)) for lane, times in sorted(ready.items())
        ],
        paused=sorted(tables.paused),
        leases_over=len(over),
        oldest_lease_over_at=min(over, default=None),
        newer_records=sum(job.format > RECORD_FORMAT for job in live),
        dead_letters=dict(dead),
    )
