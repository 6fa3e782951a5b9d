"""The capability of a store to be examined.

Every store answers the same questions about its jobs with facts, and the doctor (observe/doctor) decides what the facts
mean. What only one kind of store knows, such as the settings of its server or the free space on its disk, this store
interprets itself: it answers with findings (findings.py), which the doctor passes on.

Everything here concerns all tenants, because it is for the people who operate the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import Instant
from ropewalk.ports.store.findings import Finding


class Backlog(Struct, frozen=True, kw_only=True):
    """The jobs of one tenant, queue and type that could start now."""

    lane: LaneName
    """The lane of these jobs, without a limit key."""
    ready: int
    """How many jobs are ready; those of each limit key are counted to 100 000."""
    oldest_ready_at: Instant
    """The earliest run_at among those that were counted."""


class Work(Struct, frozen=True, kw_only=True):
    """Facts about the jobs of all tenants, as far as something may be wrong with them."""

    backlog: list[Backlog]
    """The jobs that could start now, by tenant, queue and type."""
    paused: list[tuple[str, str]]
    """The paused queues, each with its tenant before it."""
    leases_over: int
    """How many running jobs have an expired lease that nobody took back."""
    oldest_lease_over_at: Instant | None
    """The earliest of these leases expired at this instant."""
    newer_records: int
    """How many live jobs are in a format of a newer release, which workers of this release leave alone."""
    dead_letters: dict[str, int]
    """How many dead letters there are of each type."""
    set_aside: int = 0
    """How many of the dead letters have stored rows that cannot be read."""
    unreadable: list[str] = []
    """The tables with rows that cannot be read, among those with few rows: schedules, workers, limits and quotas."""


class Examination(Struct, frozen=True, kw_only=True):
    """The answer of a store to an examination."""

    now: Instant
    work: Work
    findings: list[Finding] = []
    """The findings that only this kind of store can make. A finding on "durability" replaces the doctor's own, which
    knows only `Store.durability`."""
    wake_ups: Finding | None = None
    """The finding about wake-ups between processes, if a hint never reaches another process. None means that the doctor
    opens the store a second time and measures how long a hint takes to arrive there."""
    lost_hint_advice: str | None = None
    """The advice if such a hint does not arrive; None means that the doctor's general advice fits."""


class DiagnosisStore(Protocol):
    """A store that can be examined, and that knows which jobs wait in it."""

    async def examine(self, *, deep: bool = False) -> Examination:
        """Examines the store and changes nothing.

        With `deep` the store also examines what takes long, such as every page of a file.
        """
        ...

    def watch_durability(self, on_weakened: Callable[[str], object]) -> None:
        """Calls `on_weakened`, from any thread and once for each change, when the durability decreases while the store
        is open. A store whose durability cannot change inherits this method, which does nothing.
        """
        return

    async def backlog(self) -> list[Backlog]:
        """Returns how many jobs are ready, by tenant, queue and type, in paused queues, too. The cost is bounded,
        because the jobs of a limit key are counted to 100 000."""
        ...

    async def ahead_of(self, job: JobRecord) -> int:
        """Returns how many ready jobs of the same tenant and queue come before this one, counted to 10 000."""
        ...

    async def damage_of(self, job: JobRecord) -> Sequence[str]:
        """Returns the names of stored columns of this job that cannot be read or contradict others.

        Verbs that read many jobs do not look for contradictions, so this may find more than `job.damaged` contains.
        """
        return job.damaged
