"""Counters of what happened to the jobs of a lane. The transaction that moves jobs also counts them.

Such a transaction never changes existing counters. It adds counters of its own, so that nobody waits for another
transaction to count. Later the counters are folded into sums by minute, by hour and for all time. At every instant the
sums, together with the counters that are not folded yet, give the same totals.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct, field

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import GIVES_ATTEMPT_BACK, Move, Status
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.statistics.histogram import Histogram
from ropewalk.domain.time import DAY, HOUR, MINUTE, Instant, Span

EVER: Final[Span] = 0
"""This stands for the span of the sums for all time, which have counts but no histograms."""
MINUTES_KEPT_US: Final = DAY
"""The sums by minute are kept this long."""

TRIED_AGAIN: Final = frozenset({Move.RETRY, Move.LOSE})

K = TypeVar("K", bound=Hashable)
Folded: TypeAlias = dict[tuple[Span, Instant, K], "Counters"]
"""Sums by (length of the span, its beginning, lane)."""


class Counters(Struct, omit_defaults=True):
    """What happened to jobs, in numbers."""

    submitted: int = 0
    ended: dict[Status, int] = {}
    """The number of jobs that ended, by status."""
    retried: int = 0
    """The number of attempts that failed or were lost and are followed by another one."""
    restarted: int = 0
    """The number of finished jobs that began another run."""
    gone: dict[Status, int] = {}
    """The number of jobs that ended with a status and do not have it any more: they were restarted or deleted."""
    wait: Histogram = field(default_factory=Histogram)
    """How long attempts waited, from when they could have started to their start."""
    run: Histogram = field(default_factory=Histogram)
    """How long attempts ran."""
    total: Histogram = field(default_factory=Histogram)
    """How long jobs took from submission to end."""

    @property
    def open(self) -> int:
        """The number of jobs that were submitted and have not ended. It is right only for sums for all time."""
        return self.submitted + self.restarted - sum(self.ended.values())

    def kept(self, status: Status) -> int:
        """Returns how many jobs with this final status still exist. It is right only for sums for all time."""
        return self.ended.get(status, 0) - self.gone.get(status, 0)

    @property
    def counts_existing_jobs(self) -> bool:
        """Whether these sums for all time count any job that still exists. If not, they may be deleted."""
        return self.open != 0 or any(self.kept(status) for status in self.ended)

    def add(self, other: Counters) -> None:
        self.add_counts(other)
        self.wait.add(other.wait)
        self.run.add(other.run)
        self.total.add(other.total)

    def add_counts(self, other: Counters) -> None:
        self.submitted += other.submitted
        self.retried += other.retried
        self.restarted += other.restarted
        for status, jobs in other.ended.items():
            self.ended[status] = self.ended.get(status, 0) + jobs
        for status, jobs in other.gone.items():
            self.gone[status] = self.gone.get(status, 0) + jobs


class CountersByLane(Generic[K]):
    """The counters of one transaction, by lane."""

    def __init__(self) -> None:
        self.by_lane: dict[K, Counters] = {}

    def of(self, lane: K) -> Counters:
        return self.by_lane.get(lane) or self.by_lane.setdefault(lane, Counters())

    def completed(self, lane: K, *, waits: Sequence[Span], runs: Sequence[Span], totals: Sequence[Span]) -> None:
        """Counts jobs that completed. A duration is 0 if the clock was set back in the meantime."""
        done = {Status.COMPLETED: len(totals)}
        wait, run, total = (Histogram.of(_forwards(spans)) for spans in (waits, runs, totals))
        counters = Counters(ended=done, wait=wait, run=run, total=total)
        if self.by_lane.setdefault(lane, counters) is not counters:
            self.by_lane[lane].add(counters)

    def moved(self, lane: K, job: JobRecord, effects: Effects, now: Instant) -> None:
        """Counts a change of one job with the effects that the domain decided on."""
        counters = self.of(lane)
        if effects.ready_at is not None and effects.move not in GIVES_ATTEMPT_BACK:
            started_at = now if job.started_at is None else job.started_at
            waited, timing = max(0, started_at - effects.ready_at), effects.timing
            counters.wait.note(waited if timing is None else waited + timing.waited_us)
            counters.run.note(max(0, now - started_at) if timing is None else timing.ran_us)
        if effects.move in TRIED_AGAIN:
            counters.retried += 1
        if effects.reopened_from is not None:
            counters.restarted += 1
            counters.gone[effects.reopened_from] = counters.gone.get(effects.reopened_from, 0) + 1
        if job.terminal:
            counters.ended[job.status] = counters.ended.get(job.status, 0) + 1
            counters.total.note(max(0, now - job.created_at))


def _forwards(spans_us: Sequence[Span]) -> Sequence[Span]:
    return spans_us if min(spans_us) >= 0 else [max(0, span) for span in spans_us]


def minute_of(now: Instant) -> Instant:
    return now - now % MINUTE


def fold(rows: Iterable[tuple[Instant, K, Counters]]) -> Folded[K]:
    """Adds counters up by minute, by hour and for all time. Each row names its minute and its lane."""
    folded: Folded[K] = {}
    for at, lane, counters in rows:
        for key in ((MINUTE, at, lane), (HOUR, at - at % HOUR, lane)):
            (folded.get(key) or folded.setdefault(key, Counters())).add(counters)
        for_good = (EVER, 0, lane)
        (folded.get(for_good) or folded.setdefault(for_good, Counters())).add_counts(counters)
    return folded
