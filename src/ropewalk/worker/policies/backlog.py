"""The backlog alarm: jobs wait too long although this worker takes all it can. It looks at what claims bring, and at
nothing else, so that it costs nothing. Pure: the time is given.

Tells hooks of a backlog: what claims bring, weighed by backlog.py, as events.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ropewalk.domain import checks
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import SECOND, Seconds, to_span
from ropewalk.ports.store.claims import Claimed
from ropewalk.worker.context import WorkerContext

Change: TypeAlias = Literal["backlog", "backlog_over"]


class BacklogAlarm(Struct, frozen=True):
    """`app.worker(backlog_alarm=BacklogAlarm(older_than=60))`: tell when jobs have waited for more than a minute.

    every: tell again after so many seconds while it lasts; None tells once.
    """

    older_than: Seconds
    every: Seconds | None = None

    def __post_init__(self) -> None:
        to_span(self.older_than, "older_than")
        checks.positive_span_or_none(self.every, "every")


class Backlog:
    """A BacklogAlarm in one worker."""

    def __init__(self, alarm: BacklogAlarm) -> None:
        self._older_than = to_span(alarm.older_than, "older_than") / SECOND
        self._every = None if alarm.every is None else to_span(alarm.every, "every") / SECOND
        self._told_at: float | None = None
        """None: there is no backlog"""

    def saw(self, waited_seconds: float, *, filled: bool, now: float) -> Change | None:
        """A claim brought jobs, of which one has waited so long. `filled`: all it was asked for, so more may wait."""
        if not filled or waited_seconds <= self._older_than:
            was_told, self._told_at = self._told_at, None
            return None if was_told is None else "backlog_over"
        if self._told_at is None or (self._every is not None and now - self._told_at >= self._every):
            self._told_at = now
            return "backlog"
        return None


class Alarm:
    def __init__(self, worker_context: WorkerContext, alarm: BacklogAlarm) -> None:
        self._worker_context = worker_context
        self._backlog = Backlog(alarm)
        self._about: JobRecord | None = None
        """the job the last alarm was about"""

    def saw(self, claimed: Claimed, *, filled: bool) -> None:
        oldest = min(claimed.jobs, key=lambda job: job.run_at, default=None)
        waited = 0.0 if oldest is None else (claimed.now - oldest.run_at) / SECOND
        change = self._backlog.saw(waited, filled=filled, now=self._worker_context.runtime.monotonic())
        if change == "backlog":
            self._about = oldest
        if change is None or self._about is None:
            return
        message = f"waited {waited:.1f} s" if change == "backlog" else None
        self._worker_context.events.tell(self._about, change, message=message)
