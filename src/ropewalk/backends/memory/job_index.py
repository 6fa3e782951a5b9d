"""Indexes of running and of finished jobs.

Running jobs are few, so their expiries are not sorted: a lower bound tells when it is worth looking at all of them.
Finished jobs are in the order in which they finished, so that retention finds the oldest without looking at the others.
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
    """The running jobs."""

    def __init__(self) -> None:
        self._held: dict[int, JobRecord] = {}
        self._none_before: Instant = _NEVER
        """No lease expires before this instant. Renewals can only make it later."""

    def add(self, job: JobRecord) -> None:
        self._held[job.seq] = job
        self.changed(job)

    def changed(self, job: JobRecord) -> None:
        """Notes that a job's lease may expire earlier than before."""
        self._none_before = min(self._none_before, _expiry(job))

    def remove(self, job: JobRecord) -> None:
        del self._held[job.seq]

    def run_out(self, now: Instant, limit: int) -> list[JobRecord]:
        """Returns up to `limit` jobs whose leases have expired, those that expired first at the beginning."""
        if now < self._none_before:
            return []
        by_expiry = sorted(self._held.values(), key=lambda job: (_expiry(job), job.seq))
        over = [job for job in by_expiry[:limit] if _expiry(job) <= now]
        rest = by_expiry[len(over) :]
        self._none_before = _expiry(rest[0]) if rest else _NEVER
        return over

    def of(self, owner: str) -> list[JobRecord]:
        """Returns the jobs that a worker runs, in the order of their submission."""
        return [job for _, job in sorted(self._held.items()) if job.owner == owner]

    def __iter__(self) -> Iterator[JobRecord]:
        return iter(self._held.values())


def _expiry(job: JobRecord) -> Instant:
    assert job.lease_expires_at is not None, f"job {job.id} is held without an expiry"
    return job.lease_expires_at


class Finished:
    """The finished jobs."""

    def __init__(self) -> None:
        self._by_status_and_type: dict[tuple[Status, str], dict[int, JobRecord]] = {}
        """The jobs by (status, type), because each of these has a retention of its own."""
        self._with_result: dict[int, JobRecord] = {}
        """The jobs that still have their result."""

    def add(self, job: JobRecord) -> None:
        jobs = self._by_status_and_type.get((job.status, job.type))
        if jobs is None:
            jobs = self._by_status_and_type[job.status, job.type] = {}
        jobs[job.seq] = job
        if job.result is not None:
            self._with_result[job.seq] = job

    def remove(self, job: JobRecord, status: Status) -> None:
        """Removes a job that had finished with this status and was retried or deleted."""
        jobs = self._by_status_and_type[status, job.type]
        del jobs[job.seq]
        if not jobs:
            del self._by_status_and_type[status, job.type]
        self._with_result.pop(job.seq, None)

    def past_retention(self, retention: Retention, now: Instant) -> Iterator[JobRecord]:
        """Yields the jobs that are past their retention."""
        for (status, job_type), jobs in self._by_status_and_type.items():
            for job in jobs.values():
                if not is_over(retention, status, job_type, _finished_at(job), now):
                    break  # The others of this status and type finished later.
                yield job

    def old_results(self, before: Instant) -> Iterator[JobRecord]:
        """Yields jobs that finished up to `before` and still have their result."""
        return takewhile(lambda job: _finished_at(job) <= before, self._with_result.values())

    def forget_results(self, jobs: Iterable[JobRecord]) -> None:
        """Deletes the results of these jobs."""
        for job in jobs:
            job.result = None
            job.flags |= FORGOTTEN
            del self._with_result[job.seq]


def _finished_at(job: JobRecord) -> Instant:
    assert job.finished_at is not None, f"job {job.id} is {job.status} without having finished"
    return job.finished_at
