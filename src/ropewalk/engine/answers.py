"""What the client's verbs answer, beside jobs themselves."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from ropewalk.domain.operator import RetryStatus
from ropewalk.domain.states import State
from ropewalk.engine.info import JobInfo


class SearchPage(Struct, frozen=True):
    jobs: list[JobInfo]
    next_cursor: str | None


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

    def tally(self, *, done: bool, missing: bool) -> None:
        if done:
            self.done += 1
        elif missing:
            self.missing += 1
        else:
            self.skipped += 1
