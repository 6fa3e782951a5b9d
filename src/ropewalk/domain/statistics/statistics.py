"""What happened in a stretch of time, and how many jobs stand where now: what `app.stats()` answers.

These are read from counters (counters.py), which are counted where jobs move. Nothing here looks at a job.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ropewalk.domain.jobs.states import State
from ropewalk.domain.statistics.histogram import Histogram
from ropewalk.domain.time import Instant, Span, to_seconds


class Latency(Struct, frozen=True, kw_only=True):
    """How long something took. Percentiles are at most a sixteenth off, the rest is exact; all zero without any."""

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
    """What happened in a stretch of time."""

    submitted: int = 0
    completed: int = 0
    failed: int = 0
    dead_letter: int = 0
    cancelled: int = 0
    retried: int = 0
    """attempts that failed, or were lost with their worker, and are tried again"""
    wait: Latency = Latency()
    """of attempts that ended: from when they could have started to their start"""
    run: Latency = Latency()
    """of the same: from start to end. An attempt that was given back (deferred, suspended, released) is none."""
    total: Latency = Latency()
    """of jobs that ended: from submission to the end"""

    @property
    def finished(self) -> int:
        return self.completed + self.failed + self.dead_letter + self.cancelled


class Slice(Struct, frozen=True, kw_only=True):
    """One piece of the time line; `at` is its beginning."""

    at: Instant
    flow: Flow


class Share(Struct, frozen=True, kw_only=True):
    """What a type, a queue, or a type in a queue had of it. None: not what was asked to be told apart."""

    queue: str | None
    type: str | None
    flow: Flow


class Standing(Struct, frozen=True, kw_only=True):
    """How many jobs are in each state now; finished ones as long as they are kept. States without any are left out."""

    queue: str
    type: str
    states: Mapping[State, int]


class Statistics(Struct, frozen=True, kw_only=True):
    """Of one tenant, from `since` on and before `until`, which are rounded to what is counted together."""

    since: Instant
    until: Instant
    slice_us: Span
    """the length of a slice: whole minutes, or whole hours where the range is long or long ago"""
    flow: Flow
    line: tuple[Slice, ...]
    """in order, without gaps"""
    shares: tuple[Share, ...]
    """most finished first"""
    standing: tuple[Standing, ...]
    """by queue and type"""

    @property
    def states(self) -> dict[State, int]:
        """How many jobs are in each state now, those that have none left out."""
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
