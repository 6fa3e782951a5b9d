"""Running jobs. They are few, so their expiries are not indexed: a lower bound tells when looking is worth it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import Instant

_NEVER: Final[Instant] = 1 << 62


class Leases:
    def __init__(self) -> None:
        self._held: dict[int, JobRecord] = {}
        self._none_before: Instant = _NEVER
        """no lease runs out before this instant (renewals only make it later)"""

    def add(self, job: JobRecord) -> None:
        self._held[job.seq] = job
        self.changed(job)

    def changed(self, job: JobRecord) -> None:
        """Its expiry may have come nearer."""
        self._none_before = min(self._none_before, _expiry(job))

    def remove(self, job: JobRecord) -> None:
        del self._held[job.seq]

    def run_out(self, now: Instant, limit: int) -> list[JobRecord]:
        """Up to `limit` jobs whose lease is over, longest over first."""
        if now < self._none_before:
            return []
        by_expiry = sorted(self._held.values(), key=lambda job: (_expiry(job), job.seq))
        over = [job for job in by_expiry[:limit] if _expiry(job) <= now]
        rest = by_expiry[len(over) :]
        self._none_before = _expiry(rest[0]) if rest else _NEVER
        return over

    def __iter__(self) -> Iterator[JobRecord]:
        return iter(self._held.values())


def _expiry(job: JobRecord) -> Instant:
    assert job.lease_expires_at is not None, f"job {job.id} is held without an expiry"
    return job.lease_expires_at
