"""The history of a job: a list of its recorded changes without gaps, assembled from what a store keeps anyway.

A plain job has no history rows: columns of its own record say when it was queued, started and completed. Attempts that
ended in another way, and what operators did to the job, are rows. Together they give exactly one entry for each `rev`
from 1 to `job.rev`.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.record import AttemptRecord, EventRecord, JobRecord
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.time import Instant


class HistoryEntry(Struct, frozen=True, kw_only=True):
    """One recorded change of a job."""

    rev: int
    kind: str
    """The change is named "queued", "started", after a move ("complete", "retry", "bury", …), or after what an operator
    did ("cancel_requested", "retried", "updated", …)."""
    at: Instant
    attempt: int | None = None
    worker: str | None = None
    reason: str | None = None
    error: ErrorInfo | None = None


def assemble(job: JobRecord, attempts: Iterable[AttemptRecord], events: Iterable[EventRecord]) -> list[HistoryEntry]:
    """Returns the history of a job, ordered by `rev`."""
    entries = [HistoryEntry(rev=1, kind="queued", at=job.created_at)]
    for ended in attempts:
        entries.append(_started(ended.start_rev, ended.started_at, ended.attempt, ended.owner))
        entries.append(
            HistoryEntry(
                rev=ended.rev,
                kind=ended.move.value,
                at=ended.ended_at,
                attempt=ended.attempt,
                worker=ended.owner,
                error=ended.error,
                reason=None if ended.error is None else ended.error.message,
            )
        )
    entries.extend(HistoryEntry(rev=event.rev, kind=event.kind, at=event.at, reason=event.reason) for event in events)
    if job.started_at is not None and (job.status is Status.RUNNING or job.last_move is Move.COMPLETE):
        entries.append(_started(job.start_rev, job.started_at, job.attempt, job.owner))
    if job.last_move is Move.COMPLETE and job.finished_at is not None:
        entries.append(
            HistoryEntry(
                rev=job.rev, kind=Move.COMPLETE.value, at=job.finished_at, attempt=job.attempt, worker=job.owner
            )
        )
    return sorted(entries, key=lambda entry: entry.rev)


def _started(rev: int, at: Instant, attempt: int, worker: str | None) -> HistoryEntry:
    return HistoryEntry(rev=rev, kind="started", at=at, attempt=attempt, worker=worker)
