"""Capability: what a store tells of itself when it is examined.

These are facts and no advice: what to make of them is observe.doctor's.

Everything here is of all tenants: it is for who runs the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import Instant, Span
from ropewalk.ports.store.messages import Backlog


class Work(Struct, frozen=True, kw_only=True):
    """How the jobs stand, as far as something may be wrong with it."""

    backlog: list[Backlog]
    """by tenant, queue and type"""
    paused: list[tuple[str, str]]
    """(tenant, queue)"""
    leases_over: int
    """running jobs whose lease ended, and that nobody took back"""
    oldest_lease_over_at: Instant | None
    newer_records: int
    """live jobs in a format of a newer release, which workers of this one leave alone"""
    dead_letters: dict[str, int]
    """by type"""
    set_aside: int = 0
    """those of them whose stored rows cannot be read"""
    unreadable: list[str] = []
    """tables with rows that cannot be read, of those with few rows: schedules, workers, limits and quotas"""


class SqliteFacts(Struct, frozen=True, kw_only=True, tag="sqlite"):
    path: str
    library: str
    """the version of SQLite itself"""
    corrupts_beside_others: bool
    """it has the bug that backends/sqlite/library.py tells of"""
    network: str | None
    """the kind of network file system the file lies on"""
    journal_mode: str
    synchronous: int
    """of the connection that writes: 0 off, 1 normal, 2 full, 3 extra"""
    page_bytes: int
    pages: int
    free_pages: int
    shrinks: bool
    """the file was made so that free pages can be given back"""
    wal_bytes: int
    disk_free_bytes: int
    trouble: str | None
    """what the integrity check found first; "ok", or None where nobody asked for one"""


class OpenTransaction(Struct, frozen=True, kw_only=True):
    pid: int
    """0: a prepared one, of no session"""
    who: str
    """the application's name, or the transaction's"""
    idle: bool
    """nobody does anything in it"""
    age_us: Span


class LockWait(Struct, frozen=True, kw_only=True):
    pid: int
    waits_us: Span
    blocked_by: list[int]


class TableFacts(Struct, frozen=True, kw_only=True):
    name: str
    live: int
    dead: int
    total_bytes: int
    vacuumed_at: Instant | None


class PostgresFacts(Struct, frozen=True, kw_only=True, tag="postgres"):
    version: str
    schema: str
    settings: dict[str, str]
    """those of this session: fsync, full_page_writes, synchronous_commit, synchronous_standby_names, wal_level,
    default_transaction_isolation, autovacuum"""
    in_recovery: bool
    pooled: bool
    """something between us and the server gives us sessions that are not ours"""
    notify: bool
    """wake-ups are wanted"""
    rights_missing: list[str]
    sees_all_sessions: bool
    connections: int
    connections_max: int
    """without those kept for administrators"""
    transactions: list[OpenTransaction]
    """of this database, the oldest first, a few of them"""
    lock_waits: list[LockWait]
    """the longest first, a few of them"""
    tables: list[TableFacts]
    """those that change with every job"""
    oldest_xid_age: int
    """how many transactions ago this database was last frozen"""
    freeze_at_age: int


class Examination(Struct, frozen=True, kw_only=True):
    now: Instant
    work: Work
    place: SqliteFacts | PostgresFacts | None = None
    """None: there is nothing to know about where it is kept"""


class DiagnosisStore(Protocol):
    """What a store tells of itself and of what waits in it."""

    async def examine(self, *, deep: bool = False) -> Examination:
        """Look at everything, change nothing. `deep`: also at what takes long, such as every page of a file."""
        ...

    def watch_durability(self, on_weakened: Callable[[str], object]) -> None:
        """Call `on_weakened`, from any thread and once for each change, when the durability becomes less while the
        store is open. A store whose durability cannot change leaves this as it is.
        """
        return

    async def backlog(self) -> list[Backlog]:
        """Ready jobs by tenant, queue and type; paused queues too. Cost is bounded: see Backlog."""
        ...

    async def ahead_of(self, job: JobRecord) -> int:
        """How many ready jobs of its (tenant, queue) come before it (counted to 10 000)."""
        ...

    async def damage_of(self, job: JobRecord) -> Sequence[str]:
        """Names of stored columns of this job that cannot be read or contradict others.

        Reading many jobs does not look for contradictions, so this may find more than `job.damaged` says.
        """
        return job.damaged
