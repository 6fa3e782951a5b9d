"""Finished jobs in the order they finished, so that retention finds the oldest without looking at the others."""

from __future__ import annotations

from collections.abc import Iterator

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.retention import Retention, is_over
from ropewalk.domain.time import Instant


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
        """It finished with this status, and was revived or is gone."""
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

    def forget_results(self, before: Instant, limit: int) -> int:
        """Drop the results of jobs that finished up to `before`."""
        old: list[JobRecord] = []
        for job in self._with_result.values():
            if _finished_at(job) > before or len(old) == limit:
                break
            old.append(job)
        for job in old:
            job.result = None
            del self._with_result[job.seq]
        return len(old)


def _finished_at(job: JobRecord) -> Instant:
    assert job.finished_at is not None, f"job {job.id} is {job.status} without having finished"
    return job.finished_at
