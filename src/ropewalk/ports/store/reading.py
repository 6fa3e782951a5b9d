"""The part of the core with which people and workers read about jobs, queues and workers.

The rules for every verb are in core.py.
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
    """One page of the answer to a search, with the cursor for the next page."""

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
    """The verbs that read. They see everything that any finished call has changed."""

    async def get(self, tenant: str, ids: Sequence[str]) -> Snapshot:
        """Returns those of these jobs that exist."""
        ...

    async def search(self, tenant: str, wanted: Filter, *, order: Order, cursor: str | None, limit: int) -> Page:
        """Returns one page of the jobs for which domain.search.matches is true. A cursor stays valid while jobs are
        added and deleted."""
        ...

    async def count(self, tenant: str, wanted: Filter, *, limit: int | None = None) -> int:
        """Returns the number of jobs for which domain.search.matches is true. It counts up to `limit` and looks at no
        more jobs when it has found so many."""
        ...

    async def history(self, tenant: str, job_id: str) -> StoredHistory | None:
        """Returns what is recorded about a job; None if there is no such job."""
        ...

    async def queues(self, tenant: str) -> list[QueueInfo]:
        """Returns every queue that is paused or has jobs that have not ended, by name."""
        ...

    async def workers(self) -> list[WorkerCard]:
        """Returns the cards of all registered workers."""
        ...

    async def clock(self) -> Instant:
        """Returns the time of the store's clock."""
        ...
