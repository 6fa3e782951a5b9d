"""What the client's verbs answer, beside jobs themselves.

A kept log line, as people see it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec
from msgspec import Struct

from ropewalk.client.views.jobs import JobInfo
from ropewalk.domain.jobs.operations import RetryStatus
from ropewalk.domain.jobs.states import State
from ropewalk.domain.logs import LogLine
from ropewalk.domain.time import to_datetime


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


class RetryResult(Struct, frozen=True, kw_only=True):
    job_id: str
    status: RetryStatus
    new_state: State | None
    scheduled_for: datetime | None
    reason: str | None


class BulkResult(Struct, kw_only=True):
    """`requested` jobs matched; with dry_run nothing was done to them."""

    requested: int = 0
    done: int = 0
    skipped: int = 0
    missing: int = 0

    def count(self, *, done: bool, missing: bool) -> None:
        if done:
            self.done += 1
        elif missing:
            self.missing += 1
        else:
            self.skipped += 1


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
