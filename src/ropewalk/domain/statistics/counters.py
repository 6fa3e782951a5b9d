"""What happened to the jobs of one lane, counted where it happens: in the transaction that moves them.

Counters are never changed by those who move jobs: each batch adds counters of its own, so nobody waits for another to
count.
Later they are folded: what is of one minute together, what is of one hour, and all of it for as long as the store
lasts. The sum of what is folded and what is not yet is the same at every instant.
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
"""the span of what is added up for good; it has counts alone"""
MINUTES_KEPT_US: Final = DAY

TRIED_AGAIN: Final = frozenset({Move.RETRY, Move.LOSE})

K = TypeVar("K", bound=Hashable)
Folded: TypeAlias = dict[tuple[Span, Instant, K], "Counters"]
"""by (how long, from when, which lane)"""


class Counters(Struct, omit_defaults=True):
    submitted: int = 0
    ended: dict[Status, int] = {}
    retried: int = 0
    restarted: int = 0
    gone: dict[Status, int] = {}
    """ended that way and no longer there: restarted, deleted, or past retention"""
    wait: Histogram = field(default_factory=Histogram)
    run: Histogram = field(default_factory=Histogram)
    total: Histogram = field(default_factory=Histogram)

    @property
    def open(self) -> int:
        """How many have been submitted and not ended, of all there ever were."""
        return self.submitted + self.restarted - sum(self.ended.values())

    def kept(self, status: Status) -> int:
        """How many that ended so are still there, of all there ever were."""
        return self.ended.get(status, 0) - self.gone.get(status, 0)

    @property
    def stands(self) -> bool:
        """Of all there ever were, does any matter to how many jobs stand where? If not, it may be forgotten whole."""
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
    """What one batch did, by lane."""

    def __init__(self) -> None:
        self.by_lane: dict[K, Counters] = {}

    def of(self, lane: K) -> Counters:
        return self.by_lane.get(lane) or self.by_lane.setdefault(lane, Counters())

    def completed(self, lane: K, *, waits: Sequence[Span], runs: Sequence[Span], totals: Sequence[Span]) -> None:
        """Many that did nothing but complete. Where a clock went back, it took no time."""
        done = {Status.COMPLETED: len(totals)}
        wait, run, total = (Histogram.of(_forwards(spans)) for spans in (waits, runs, totals))
        counters = Counters(ended=done, wait=wait, run=run, total=total)
        if self.by_lane.setdefault(lane, counters) is not counters:
            self.by_lane[lane].add(counters)

    def moved(self, lane: K, job: JobRecord, effects: Effects, now: Instant) -> None:
        """Whatever the domain decided about one."""
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
    """CountersByLane of whatever minutes, added up by minute, by hour and for good."""
    folded: Folded[K] = {}
    for at, lane, counters in rows:
        for key in ((MINUTE, at, lane), (HOUR, at - at % HOUR, lane)):
            (folded.get(key) or folded.setdefault(key, Counters())).add(counters)
        for_good = (EVER, 0, lane)
        (folded.get(for_good) or folded.setdefault(for_good, Counters())).add_counts(counters)
    return folded
