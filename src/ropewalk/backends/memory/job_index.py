"""Running jobs. They are few, so their expiries are not indexed: a lower bound tells when looking is worth it.

Finished jobs in the order they finished, so that retention finds the oldest without looking at the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Final

from ropewalk.domain.jobs.flags import FORGOTTEN
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.retention import Retention, is_over
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

    def of(self, owner: str) -> list[JobRecord]:
        """What this worker holds, in order of submission."""
        return [job for _, job in sorted(self._held.items()) if job.owner == owner]

    def __iter__(self) -> Iterator[JobRecord]:
        return iter(self._held.values())


def _expiry(job: JobRecord) -> Instant:
    assert job.lease_expires_at is not None, f"job {job.id} is held without an expiry"
    return job.lease_expires_at


class Finished:
    def __init__(self) -> None:
        self._shelves: dict[tuple[Status, str], dict[int, JobRecord]] = {}
        """by (status, type), because each of those has a retention of its own"""
        self._with_result: dict[int, JobRecord] = {}

    def add(self, job: JobRecord) -> None:
        shelf = self._shelves.get((job.status, job.type))
        if shelf is None:
            shelf = self._shelves[job.status, job.type] = {}
        shelf[job.seq] = job
        if job.result is not None:
            self._with_result[job.seq] = job

    def remove(self, job: JobRecord, status: Status) -> None:
        """It finished with this status, and was retried or is gone."""
        shelf = self._shelves[status, job.type]
        del shelf[job.seq]
        if not shelf:
            del self._shelves[status, job.type]
        self._with_result.pop(job.seq, None)

    def past_retention(self, retention: Retention, now: Instant) -> Iterator[JobRecord]:
        for (status, job_type), shelf in self._shelves.items():
            for job in shelf.values():
                if not is_over(retention, status, job_type, _finished_at(job), now):
                    break  # the rest of this shelf finished later
                yield job

    def old_results(self, before: Instant) -> Iterator[JobRecord]:
        """Jobs that finished up to `before` and still have their result."""
        return takewhile(lambda job: _finished_at(job) <= before, self._with_result.values())

    def forget_results(self, jobs: Iterable[JobRecord]) -> None:
        for job in jobs:
            job.result = None
            job.flags |= FORGOTTEN
            del self._with_result[job.seq]


def _finished_at(job: JobRecord) -> Instant:
    assert job.finished_at is not None, f"job {job.id} is {job.status} without having finished"
    return job.finished_at
