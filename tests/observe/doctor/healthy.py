"""Facts of a store that is well; a test says what is not."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from ropewalk.domain.limits.fleet_limit import FlowLimit, LaneName
from ropewalk.domain.time import SECOND
from ropewalk.observe.doctor.facts import ClockReading, Facts
from ropewalk.ports.store.core import Durability
from ropewalk.ports.store.diagnosis import Backlog, Examination, Work
from ropewalk.ports.store.findings import Finding, Level
from ropewalk.ports.store.leases import WorkerCard
from ropewalk.ports.store.limits import LimitUse

NOW = 1_000_000 * SECOND
WORK = Work(backlog=[], paused=[], leases_over=0, oldest_lease_over_at=None, newer_records=0, dead_letters={})
WORKER = WorkerCard(
    id="w1",
    host="h",
    pid=1,
    types=("add", "mail"),
    queues=None,
    tenants=None,
    concurrency=10,
    started_at=NOW - 60 * SECOND,
    beat_at=NOW - SECOND,
    held=3,
)
FACTS = Facts(
    durability=Durability.D2,
    examination=Examination(now=NOW, work=WORK),
    workers=[WORKER],
    late=[],
    full=[],
    clock=ClockReading(ahead_us=0, uncertain_us=0),
    hint_us=2000,
    hint_sent=True,
)


def work(**fields: Any) -> Work:
    return structs.replace(WORK, **fields)


def backlog(
    job_type: str = "add", *, tenant: str = "default", queue: str = "default", jobs: int = 1, since: float = 5.0
) -> Backlog:
    lane = LaneName(tenant, queue, job_type, "")
    return Backlog(lane=lane, ready=jobs, oldest_ready_at=NOW - round(since * SECOND))


def full(kind: Any, name: str, in_use: int = 5) -> LimitUse:
    return LimitUse(limit=FlowLimit(tenant="default", kind=kind, name=name, concurrency=5), in_use=in_use)


def told(findings: list[Finding]) -> list[tuple[str, str, str]]:
    """(level, subject, what is the case); and that each says what to do, unless all is well."""
    for each in findings:
        assert (each.advice is None) == (each.level is Level.OK), each
    return [(each.level.value, each.subject, each.found) for each in findings]
