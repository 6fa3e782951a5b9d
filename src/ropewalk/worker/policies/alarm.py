"""Tells hooks of a backlog: what claims bring, weighed by backlog.py, as events."""

from __future__ import annotations

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.messages import Claimed
from ropewalk.worker.context import Workbench
from ropewalk.worker.policies.backlog import Backlog, BacklogAlarm


class Alarm:
    def __init__(self, bench: Workbench, alarm: BacklogAlarm) -> None:
        self._bench = bench
        self._backlog = Backlog(alarm)
        self._about: JobRecord | None = None
        """the job the last alarm was about"""

    def saw(self, claimed: Claimed, *, filled: bool) -> None:
        oldest = min(claimed.jobs, key=lambda job: job.run_at, default=None)
        waited = 0.0 if oldest is None else (claimed.now - oldest.run_at) / SECOND
        change = self._backlog.saw(waited, filled=filled, now=self._bench.runtime.monotonic())
        if change == "backlog":
            self._about = oldest
        if change is None or self._about is None:
            return
        message = f"waited {waited:.1f} s" if change == "backlog" else None
        self._bench.events.tell(self._about, change, message=message)
