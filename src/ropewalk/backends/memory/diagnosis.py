"""Collects the facts about the jobs of all tenants for an examination."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from ropewalk.backends.memory.queries import backlog
from ropewalk.backends.memory.tables import Tables
from ropewalk.domain.jobs.record import RECORD_FORMAT
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import Instant
from ropewalk.ports.store.diagnosis import Work


def work(tables: Tables, now: Instant) -> Work:
    """Returns the facts about open work."""
    live = [*chain.from_iterable(map(tables.lanes.waiting, tables.tenants)), *tables.leases]
    over = [at for job in tables.leases if (at := job.lease_expires_at) is not None and at <= now]
    dead = Counter(job.type for job in tables.jobs.values() if job.status is Status.DEAD_LETTER)
    return Work(
        backlog=backlog(tables, now),
        paused=sorted(tables.paused),
        leases_over=len(over),
        oldest_lease_over_at=min(over, default=None),
        newer_records=sum(job.format > RECORD_FORMAT for job in live),
        dead_letters=dict(dead),
    )
