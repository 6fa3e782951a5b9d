"""Idempotency keys: each names the job that opened it. domain.jobs.idempotency decides what a key means for a
submission.

A key may outlive the end of its job but not the job itself: while its window lasts, the job is not pruned, and when the
job is deleted, the key is, too. So a key always names a job that exists.
"""

from __future__ import annotations

import heapq
from typing import TypeAlias

from ropewalk.domain.jobs.flags import KEYED
from ropewalk.domain.jobs.idempotency import KeyRecord, input_hash
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import Instant

KeyName: TypeAlias = tuple[str, str, str]
"""The name of a key: (tenant, type, key)."""


class Keys:
    """All idempotency keys."""

    def __init__(self) -> None:
        self._records: dict[KeyName, KeyRecord] = {}
        self._closed: list[tuple[Instant, KeyName]] = []
        """A heap of closed keys by the end of their window. Some entries are outdated."""

    def find(self, name: KeyName) -> KeyRecord | None:
        return self._records.get(name)

    def put(self, record: KeyRecord) -> None:
        self._records[record.tenant, record.type, record.key] = record

    def close(self, job: JobRecord, now: Instant) -> None:
        """Closes the key of a job that became terminal."""
        held = self._held_by(job)
        if held is not None:
            held.closed_at = now
            heapq.heappush(self._closed, (_window_end(held), _name(job)))

    def may_reopen(self, job: JobRecord) -> bool:
        """Whether no other open job holds the key of this finished one."""
        held = self._records.get(_name(job)) if job.flags & KEYED else None
        return held is None or held.job_id == job.id or held.closed_at is not None

    def reopen(self, job: JobRecord, now: Instant) -> None:
        """Opens the key of a job that was retried, even if it was pruned or given to another job meanwhile."""
        if not job.flags & KEYED:
            return
        held = self._held_by(job)
        if held is None:
            tenant, job_type, key = _name(job)
            held = KeyRecord(
                tenant=tenant,
                type=job_type,
                key=key,
                job_id=job.id,
                run=job.run,
                input_hash=input_hash(job.input),
                opened_at=now,
            )
            self.put(held)
        held.run = job.run
        held.input_hash = input_hash(job.input)
        held.closed_at = None

    def move(self, job: JobRecord) -> None:
        """Lets the key of a waiting job stand for its new input, after that was updated."""
        held = self._held_by(job)
        if held is not None:
            held.input_hash = input_hash(job.input)

    def forget(self, job: JobRecord) -> None:
        """Removes the key of a job that is deleted."""
        if self._held_by(job) is not None:
            del self._records[_name(job)]

    def protects(self, job: JobRecord, now: Instant) -> bool:
        """Whether a repeated submission may still have to find this job."""
        held = self._held_by(job)
        return held is not None and _window_end(held) > now

    def prune(self, now: Instant, limit: int) -> int:
        """Removes closed keys whose window is over, up to a limit. Returns their number."""
        forgotten = 0
        while self._closed and self._closed[0][0] <= now and forgotten < limit:
            _, name = heapq.heappop(self._closed)
            held = self._records.get(name)
            if held is None or held.closed_at is None:
                continue
            if _window_end(held) > now:
                heapq.heappush(self._closed, (_window_end(held), name))
                continue
            del self._records[name]
            forgotten += 1
        return forgotten

    def _held_by(self, job: JobRecord) -> KeyRecord | None:
        if not job.flags & KEYED:
            return None
        held = self._records.get(_name(job))
        return held if held is not None and held.job_id == job.id else None


def _name(job: JobRecord) -> KeyName:
    assert job.idempotency_key is not None, f"job {job.id} is flagged as keyed and has no key"
    return job.tenant, job.type, job.idempotency_key


def _window_end(held: KeyRecord) -> Instant:
    return held.opened_at + held.keep_us
