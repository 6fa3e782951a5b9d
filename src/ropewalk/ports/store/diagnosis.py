"""Capability: what a store says about itself when it is examined.

How the jobs stand is the same question for every store: a store answers it with facts, and the doctor
(observe/doctor) decides what they mean. What only one kind of store knows, such as the settings of its server or the
room on its disk, that store interprets itself: it answers with findings (findings.py), which the doctor passes on.

Everything here concerns all tenants: it is for whoever runs the store.
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
    """Jobs that could start now, of one tenant, queue and type."""

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
    """How many running jobs have a lease that ended and that nobody took back."""
    oldest_lease_over_at: Instant | None
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
    """What only this kind of store can say about the place where it keeps its jobs. A finding on "durability" replaces
    the doctor's own, which knows no more than `Store.durability`."""
    wake_ups: Finding | None = None
    """What to say about wake-ups between processes where a hint never reaches another process. None: the doctor opens
    the store a second time, and measures how long a hint takes to arrive there."""
    lost_hint_advice: str | None = None
    """What to do where such a hint does not arrive. None: the doctor's general advice fits."""


class DiagnosisStore(Protocol):
    """A store that can say how it is, and what waits in it."""

    async def examine(self, *, deep: bool = False) -> Examination:
        """Look at everything and change nothing.

        With `deep` the store also looks at what takes long, such as every page of a file.
        """
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
