"""What the client's verbs answer, beside jobs themselves.

A kept log line, as people see it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.client.views.jobs import JobInfo
from ropewalk.domain.jobs.operations import DEPENDANTS_UNRESOLVED, UNMET_DEPENDENCIES, CancelStatus, RetryStatus
from ropewalk.domain.jobs.states import State
from ropewalk.domain.logs import LogLine
from ropewalk.domain.time import to_datetime
from ropewalk.ports.store.submission import Accepted


class SearchPage(Struct, frozen=True):
    jobs: list[JobInfo]
    next_cursor: str | None


class FailureCounts(Struct, kw_only=True):
    """What went wrong, counted: by category, code and job type. `counted` jobs at the most, newest first."""

    counted: int = 0
    complete: bool = True
    """False when there were more than were counted"""
    by_category: dict[str, int] = {}
    by_code: dict[str, int] = {}
    by_type: dict[str, int] = {}

    def add(self, job: JobInfo) -> None:
        self.counted += 1
        self.by_type[job.type] = self.by_type.get(job.type, 0) + 1
        if job.error is not None:
            category, code = job.error.category.value, job.error.code or job.error.type or "unknown"
            self.by_category[category] = self.by_category.get(category, 0) + 1
            self.by_code[code] = self.by_code.get(code, 0) + 1


class SubmissionInfo(Struct, frozen=True, kw_only=True):
    """A job as it was when the store answered its enqueue; of a duplicate, the job that was there."""

    state: State
    created_at: datetime
    scheduled_for: datetime
    """The job does not start before this time."""

    @classmethod
    def of(cls, accepted: Accepted) -> SubmissionInfo:
        return cls(
            state=accepted.state,
            created_at=to_datetime(accepted.created_at),
            scheduled_for=to_datetime(accepted.run_at),
        )


class CancelResult(Struct, frozen=True, kw_only=True):
    """What became of the cancellation of one job."""

    job_id: str
    status: CancelStatus
    previous_state: State | None
    """The state in which the cancellation found the job. None where there is no such job."""


class RetryResult(Struct, frozen=True, kw_only=True):
    job_id: str
    status: RetryStatus
    new_state: State | None
    scheduled_for: datetime | None
    reason: str | None


_NOT_RETRIED: Final = {
    "damaged_row": "repair the columns that its error names, see `ropewalk jobs show`",
    "key_in_use": "another job that has not ended holds its idempotency key",
    UNMET_DEPENDENCIES: "it never started and waits for a job that failed; retry that one first",
    DEPENDANTS_UNRESOLVED: "jobs that depend on it have yet to learn how it ended; try again in a few seconds",
}


def why_not_retried(reason: str | None) -> str:
    """The reason of a RetryResult, for people."""
    return _NOT_RETRIED.get(reason or "", "only failed and dead_letter jobs can be retried")


REFUSALS_MAX: Final = 100
"""A bulk operation names this many of the jobs that it left as they were."""


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a bulk operation left one job as it was."""

    job_id: str
    code: str
    """For machines, such as already_complete, state_completed, key_in_use, not_terminal, in_use or not_found."""
    message: str
    """For people."""


class BulkResult(Struct, kw_only=True):
    """`requested` jobs matched; with dry_run nothing was done to them."""

    requested: int = 0
    done: int = 0
    skipped: int = 0
    missing: int = 0
    refusals: list[Refusal] = []
    """The first 100 of the jobs that were skipped or missing."""

    def skip(self, job_id: str, code: str, message: str) -> None:
        self.skipped += 1
        self._refuse(Refusal(job_id=job_id, code=code, message=message))

    def miss(self, job_id: str) -> None:
        self.missing += 1
        self._refuse(not_found(job_id))

    def _refuse(self, refusal: Refusal) -> None:
        if len(self.refusals) < REFUSALS_MAX:
            self.refusals.append(refusal)


def not_found(job_id: str) -> Refusal:
    return Refusal(job_id=job_id, code="not_found", message="there is no such job for this tenant")


class PurgeResult(Struct, kw_only=True):
    """What became of the `requested` jobs that a purge found; with dry_run nothing was done to them."""

    requested: int = 0
    deleted: int = 0
    cancelled: int = 0
    """those of them that waited, and were therefore cancelled first"""
    running: int = 0
    """left as they are, because they run"""
    needed: int = 0
    """left, because jobs that were not purged depend on them or are queued under them, and have not ended"""
    missing: int = 0
    """somebody else was faster"""
    refusals: list[Refusal] = []
    """The first 100 of the jobs that are running, needed or missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInfo:
    at: datetime
    level: str
    """DEBUG, INFO, WARNING, ERROR, CRITICAL, or the number of another one"""
    message: str
    fields: Mapping[str, object]
    attempt: int

    @classmethod
    def of(cls, line: LogLine) -> LogInfo:
        fields = {} if line.fields is None else msgspec.json.decode(line.fields, type=dict[str, object])
        names = {number: name for name, number in logging.getLevelNamesMapping().items() if name not in _SYNONYMS}
        return cls(
            at=to_datetime(line.at),
            level=names.get(line.level, str(line.level)),
            message=line.message,
            fields=fields,
            attempt=line.attempt,
        )


_SYNONYMS = frozenset({"WARN", "FATAL", "NOTSET"})
