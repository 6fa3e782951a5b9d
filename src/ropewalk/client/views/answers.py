"""The answers of the client's operations other than jobs: pages, counts, results of changes, and log lines."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.client.views.jobs import JobInfo
from ropewalk.domain.jobs.operations import (
    DEPENDANTS_UNRESOLVED,
    NO_SUCH_STEP,
    UNMET_DEPENDENCIES,
    CancelStatus,
    RetryStatus,
)
from ropewalk.domain.jobs.states import State
from ropewalk.domain.logs import LogLine
from ropewalk.domain.time import to_datetime
from ropewalk.ports.store.submission import Accepted


class SearchPage(Struct, frozen=True):
    """One page of a search. `next_cursor` is the cursor of the next page; None if this is the last one."""

    jobs: list[JobInfo]
    next_cursor: str | None


class FailureCounts(Struct, kw_only=True):
    """The numbers of failed jobs by category, code and job type."""

    counted: int = 0
    """The number of jobs that were counted."""
    complete: bool = True
    """Whether all failed jobs were counted; otherwise only the newest ones."""
    by_category: dict[str, int] = {}
    by_code: dict[str, int] = {}
    by_type: dict[str, int] = {}

    def add(self, job: JobInfo) -> None:
        """Counts one job."""
        self.counted += 1
        self.by_type[job.type] = self.by_type.get(job.type, 0) + 1
        if job.error is not None:
            category, code = job.error.category.value, job.error.code or job.error.type or "unknown"
            self.by_category[category] = self.by_category.get(category, 0) + 1
            self.by_code[code] = self.by_code.get(code, 0) + 1


class SubmissionInfo(Struct, frozen=True, kw_only=True):
    """A job as it was when the store answered its enqueue. For a duplicate this is the job that existed before."""

    state: State
    created_at: datetime
    scheduled_for: datetime
    """The job does not start before this time."""

    @classmethod
    def of(cls, accepted: Accepted) -> SubmissionInfo:
        """Returns the view of an answer of the store."""
        return cls(
            state=accepted.state,
            created_at=to_datetime(accepted.created_at),
            scheduled_for=to_datetime(accepted.run_at),
        )


class CancelResult(Struct, frozen=True, kw_only=True):
    """What a cancellation did to one job."""

    job_id: str
    status: CancelStatus
    previous_state: State | None
    """The state in which the cancellation found the job. None where there is no such job."""


class RetryResult(Struct, frozen=True, kw_only=True):
    """What a retry did to one job. `reason` says why it was refused."""

    job_id: str
    status: RetryStatus
    new_state: State | None
    scheduled_for: datetime | None
    reason: str | None


_NOT_RETRIED: Final = {
    "damaged_row": "repair the columns that its error names, see `ropewalk jobs show`",
    "key_in_use": "another job that has not ended holds its idempotency key",
    "another_run": "it has been retried since, and is in another run",
    NO_SUCH_STEP: "it has no stored step of this name: name a step that its handler has finished",
    UNMET_DEPENDENCIES: "it never started and waits for a job that failed; retry that one first",
    DEPENDANTS_UNRESOLVED: "jobs that depend on it have yet to learn how it ended; try again in a few seconds",
}


def why_not_retried(reason: str | None) -> str:
    """Returns the reason of a RetryResult in words for people."""
    return _NOT_RETRIED.get(reason or "", "only failed and dead_letter jobs can be retried")


REFUSALS_MAX: Final = 100
"""An operation on many jobs names this many of the jobs that it did not change."""


class Refusal(Struct, frozen=True, kw_only=True):
    """The reason why an operation on many jobs did not change one of them."""

    job_id: str
    code: str
    """The reason for programs, such as already_complete, state_completed, key_in_use, not_terminal, in_use or
    not_found."""
    message: str
    """The reason in words for people."""


class BulkResult(Struct, kw_only=True):
    """The counts of an operation on many jobs. With dry_run nothing was done to the jobs."""

    requested: int = 0
    """The number of jobs that were named or matched."""
    done: int = 0
    """The number of jobs that the operation changed."""
    skipped: int = 0
    """The number of jobs whose state did not allow the operation."""
    missing: int = 0
    """The number of jobs that do not exist."""
    refusals: list[Refusal] = []
    """The reasons for the first 100 jobs that were skipped or missing."""

    def skip(self, job_id: str, code: str, message: str) -> None:
        """Counts a job that was not changed."""
        self.skipped += 1
        self._refuse(Refusal(job_id=job_id, code=code, message=message))

    def miss(self, job_id: str) -> None:
        """Counts a job that does not exist."""
        self.missing += 1
        self._refuse(not_found(job_id))

    def _refuse(self, refusal: Refusal) -> None:
        if len(self.refusals) < REFUSALS_MAX:
            self.refusals.append(refusal)


def not_found(job_id: str) -> Refusal:
    """Returns the reason for a job that does not exist."""
    return Refusal(job_id=job_id, code="not_found", message="there is no such job for this tenant")


class PurgeResult(Struct, kw_only=True):
    """The counts of a purge. With dry_run nothing was done to the jobs."""

    requested: int = 0
    """The number of jobs that the purge found."""
    deleted: int = 0
    """The number of jobs that were removed."""
    cancelled: int = 0
    """The number of removed jobs that waited and were therefore cancelled first."""
    running: int = 0
    """The number of jobs that were not removed because they run."""
    needed: int = 0
    """The number of jobs that were not removed because unfinished jobs which were not purged depend on them or are
    under them."""
    missing: int = 0
    """The number of jobs that were removed by somebody else meanwhile."""
    refusals: list[Refusal] = []
    """The reasons for the first 100 jobs that are running, needed or missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInfo:
    """A line that a handler logged with `ctx.log` and that was kept."""

    at: datetime
    level: str
    """The level: DEBUG, INFO, WARNING, ERROR, CRITICAL, or the number of another level."""
    message: str
    fields: Mapping[str, object]
    attempt: int

    @classmethod
    def of(cls, line: LogLine) -> LogInfo:
        """Returns the view of a stored line."""
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
