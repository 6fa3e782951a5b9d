"""The backlog alarm sends an event when jobs wait too long although this worker claims as many as it can. It looks only
at the jobs that claims bring, so that it costs nothing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from ropewalk.domain import checks
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import SECOND, Seconds, to_span
from ropewalk.ports.store.claims import Claimed
from ropewalk.worker.context import WorkerContext

AlarmEvent: TypeAlias = Literal["backlog", "backlog_over"]


class BacklogAlarm(Struct, frozen=True):
    """`app.worker(backlog_alarm=BacklogAlarm(older_than=60))` sends an event when jobs have waited for over a minute.

    every: sends the event again after this many seconds while the backlog lasts; None sends it once.
    """

    older_than: Seconds
    every: Seconds | None = None

    def __post_init__(self) -> None:
        to_span(self.older_than, "older_than")
        checks.positive_span_or_none(self.every, "every")


class Backlog:
    """Decides from the claims of one worker whether there is a backlog. It is pure: the caller passes the time."""

    def __init__(self, alarm: BacklogAlarm) -> None:
        self._older_than = to_span(alarm.older_than, "older_than") / SECOND
        self._every = None if alarm.every is None else to_span(alarm.every, "every") / SECOND
        self._alarmed_at: float | None = None
        """The time of the last event about the backlog; None if there is no backlog."""

    def saw(self, waited_seconds: float, *, filled: bool, now: float) -> AlarmEvent | None:
        """Returns the event to send after a claim that brought a job which had waited this long. `filled` says that the
        claim brought all the jobs it asked for, so that more may wait."""
        if not filled or waited_seconds <= self._older_than:
            alarmed_at, self._alarmed_at = self._alarmed_at, None
            return None if alarmed_at is None else "backlog_over"
        if self._alarmed_at is None or (self._every is not None and now - self._alarmed_at >= self._every):
            self._alarmed_at = now
            return "backlog"
        return None


class Alarm:
    """Sends the events of the backlog alarm of one worker."""

    def __init__(self, worker_context: WorkerContext, alarm: BacklogAlarm) -> None:
        self._worker_context = worker_context
        self._backlog = Backlog(alarm)
        self._about: JobRecord | None = None
        """The oldest job at the last alarm, which the events name."""

    def saw(self, claimed: Claimed, *, filled: bool) -> None:
        """Sends an event if the jobs of this claim show that a backlog begins, lasts or ends."""
        oldest = min(claimed.jobs, key=lambda job: job.run_at, default=None)
        waited = 0.0 if oldest is None else (claimed.now - oldest.run_at) / SECOND
        event = self._backlog.saw(waited, filled=filled, now=self._worker_context.runtime.monotonic())
        if event == "backlog":
            self._about = oldest
        if event is None or self._about is None:
            return
        message = f"waited {waited:.1f} s" if event == "backlog" else None
        self._worker_context.events.emit_about(self._about, event, message=message)
