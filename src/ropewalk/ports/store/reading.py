"""Part of the core: how people and workers look at jobs, queues and workers.

What holds for every verb of a store (core.py) holds here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ropewalk.domain.jobs.record import AttemptRecord, EventRecord, JobRecord
from ropewalk.domain.jobs.states import State
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import Instant
from ropewalk.ports.store.leases import WorkerCard


class Snapshot(Struct, frozen=True, kw_only=True):
    """Some jobs as they were at one moment."""

    now: Instant
    jobs: dict[str, JobRecord]
    """The jobs by id; those that do not exist are absent."""


class Page(Struct, frozen=True, kw_only=True):
    """A part of what a search found, and the cursor for the next part."""

    now: Instant
    jobs: list[JobRecord]
    next_cursor: str | None


class StoredHistory(Struct, frozen=True, kw_only=True):
    """A job with everything recorded about it (domain.jobs.history.assemble makes the history)."""

    now: Instant
    job: JobRecord
    attempts: list[AttemptRecord]
    events: list[EventRecord]


class QueueInfo(Struct, frozen=True, kw_only=True):
    """A queue of a tenant, with the jobs in it that have not ended."""

    name: str
    paused: bool
    counts: dict[State, int]
    """How many jobs are in each of the states pending, delayed, retrying, scheduled and running."""
    oldest_ready_at: Instant | None


class Reading(Protocol):
    """Consistent with committed writes: what a finished call changed is seen by every later read."""

    async def get(self, tenant: str, ids: Sequence[str]) -> Snapshot: ...

    async def search(self, tenant: str, wanted: Filter, *, order: Order, cursor: str | None, limit: int) -> Page:
        """Jobs for which domain.search.matches holds. A cursor stays valid while jobs come and go."""
        ...

    async def count(self, tenant: str, wanted: Filter) -> int: ...

    async def history(self, tenant: str, job_id: str) -> StoredHistory | None: ...

    async def queues(self, tenant: str) -> list[QueueInfo]:
        """Every queue with live jobs or a pause mark, by name."""
        ...

    async def workers(self) -> list[WorkerCard]: ...

    async def clock(self) -> Instant:
        """The store's clock."""
        ...
