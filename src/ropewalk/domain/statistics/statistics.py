"""The answer of `app.stats()`: what happened in a range of time, and how many jobs are in each state now.

It is computed from counters (counters.py), which every transaction that moves jobs adds to. Nothing here reads jobs.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ropewalk.domain.jobs.states import State
from ropewalk.domain.statistics.histogram import Histogram
from ropewalk.domain.time import Instant, Span, to_seconds


class Latency(Struct, frozen=True, kw_only=True):
    """How long something took. Percentiles are wrong by no more than a sixteenth, and everything else is exact. All
    values are 0 if there was nothing to measure."""

    count: int = 0
    mean_us: Span = 0
    p50_us: Span = 0
    p90_us: Span = 0
    p95_us: Span = 0
    p99_us: Span = 0
    max_us: Span = 0

    @classmethod
    def of(cls, measured: Histogram) -> Latency:
        p50, p90, p95, p99 = measured.percentiles(50, 90, 95, 99)
        return cls(
            count=measured.count,
            mean_us=measured.mean,
            p50_us=p50,
            p90_us=p90,
            p95_us=p95,
            p99_us=p99,
            max_us=measured.max,
        )


class Flow(Struct, frozen=True, kw_only=True):
    """What happened in a range of time."""

    submitted: int = 0
    completed: int = 0
    failed: int = 0
    dead_letter: int = 0
    cancelled: int = 0
    retried: int = 0
    """The number of attempts that failed, or were lost with their worker, and are followed by another one."""
    wait: Latency = Latency()
    """How long attempts that ended had waited, from when they could have started to their start."""
    run: Latency = Latency()
    """How long attempts that ended had run. Deferred, suspended and released attempts are not counted."""
    total: Latency = Latency()
    """How long jobs that ended took, from submission to end."""

    @property
    def finished(self) -> int:
        return self.completed + self.failed + self.dead_letter + self.cancelled


class Slice(Struct, frozen=True, kw_only=True):
    """One slice of the time line, which begins at `at`."""

    at: Instant
    flow: Flow


class Share(Struct, frozen=True, kw_only=True):
    """The part of one type, of one queue, or of one type in one queue. `queue` or `type` is None if the query does not
    divide the answer by it."""

    queue: str | None
    type: str | None
    flow: Flow


class Standing(Struct, frozen=True, kw_only=True):
    """How many jobs of one type in one queue are in each state now. Finished jobs count as long as they are kept.
    States without jobs are left out."""

    queue: str
    type: str
    states: Mapping[State, int]


class Statistics(Struct, frozen=True, kw_only=True):
    """The statistics of one tenant from `since` until `until`, which are rounded to whole minutes or hours."""

    since: Instant
    until: Instant
    slice_us: Span
    """The length of a slice: whole minutes, or whole hours if the range is long or long ago."""
    flow: Flow
    line: tuple[Slice, ...]
    """The slices in order, without gaps."""
    shares: tuple[Share, ...]
    """The shares, those with the most finished jobs first."""
    standing: tuple[Standing, ...]
    """How many jobs are in each state now, ordered by queue and type."""

    @property
    def states(self) -> dict[State, int]:
        """How many jobs are in each state now. States without jobs are left out."""
        found: dict[State, int] = {}
        for each in self.standing:
            for state, jobs in each.states.items():
                found[state] = found.get(state, 0) + jobs
        return {state: found[state] for state in State if state in found}

    @property
    def seconds(self) -> float:
        return to_seconds(self.until - self.since)

    @property
    def finished_per_second(self) -> float:
        return self.flow.finished / self.seconds
