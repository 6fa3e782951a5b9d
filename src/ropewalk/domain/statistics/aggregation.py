"""Turns counters into statistics: selects the counters that a query is about, and adds them up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from msgspec import Struct, structs

from ropewalk.domain.jobs.states import TERMINAL, State, Status
from ropewalk.domain.statistics.counters import MINUTES_KEPT_US, Counters
from ropewalk.domain.statistics.histogram import HistogramSum
from ropewalk.domain.statistics.statistics import Flow, Latency, Share, Slice, Standing, Statistics
from ropewalk.domain.time import HOUR, MINUTE, Instant, Span

By: TypeAlias = Literal["type", "queue", "both"]
Place: TypeAlias = tuple[str, str]
"""(queue, type)"""

BY_MINUTE_MAX: Final = 6 * HOUR
"""A longer range is divided by hours, because the sums of its minutes would be too many."""


class StatsQuery(Struct, frozen=True, kw_only=True):
    """The question that statistics answer."""

    last_us: Span
    """The length of the range of time."""
    until: Instant | None = None
    """The end of the range; None means now by the store's clock."""
    by: By = "type"
    """Whether the answer is divided by type, by queue, or by both."""
    queue: str | None = None
    """The answer is only about this queue; None means all."""
    type: str | None = None
    """The answer is only about this type; None means all."""
    slices: int = 60
    """The time line has about this many slices; it may have one more, because they begin at full minutes or hours."""


class Window(Struct, frozen=True, kw_only=True):
    """The range of time that an answer is about: the range of the query, extended to whole spans and slices."""

    since: Instant
    until: Instant
    end: Instant
    """The end of the last span in the window. The present minute is in it, even if it has only begun."""
    span_us: Span
    """The length of the spans of the counters that are added up: a minute or an hour."""
    slice_us: Span
    """The length of one slice of the time line."""

    @classmethod
    def of(cls, query: StatsQuery, now: Instant) -> Window:
        until = now if query.until is None else min(query.until, now)
        since = until - query.last_us
        by_minute = query.last_us <= BY_MINUTE_MAX and since - since % MINUTE >= now - MINUTES_KEPT_US
        span = MINUTE if by_minute else HOUR
        spans = -(-query.last_us // span)
        slice_us = -(-spans // query.slices) * span
        end = (until // span + 1) * span if until == now else -(-until // span) * span
        return cls(since=since - since % slice_us, until=min(now, end), end=end, span_us=span, slice_us=slice_us)


def aggregate(
    query: StatsQuery,
    window: Window,
    *,
    within: Iterable[tuple[Instant, Place, Counters]],
    ever: Iterable[tuple[Place, Counters]],
    apart: Iterable[tuple[Place, State, int]],
) -> Statistics:
    """Adds counters up to the statistics that answer a query.

    `within` are the counters of the window, and `ever` the sums for all time. `apart` counts the open jobs that are not
    ready for a worker; all other open jobs are ready.
    """
    whole = _Sum()
    slices: dict[int, _Sum] = {}
    """The sums of the slices in which something happened, by the beginning of the slice."""
    shares: dict[tuple[str | None, str | None], _Sum] = {}
    for at, place, counters in within:
        begin = at - (at - window.since) % window.slice_us
        (slices.get(begin) or slices.setdefault(begin, _Sum())).add(counters)
        name = _name(place, query.by)
        (shares.get(name) or shares.setdefault(name, _Sum())).add(counters)
    by_share = {name: part.whole() for name, part in shares.items()}
    for counters in by_share.values():
        whole.add(counters)
    line = (
        Slice(at=at, flow=_flow(slices[at].whole()) if at in slices else Flow())
        for at in range(window.since, window.end, window.slice_us)
    )
    return Statistics(
        since=window.since,
        until=window.until,
        slice_us=window.slice_us,
        flow=_flow(whole.whole()),
        line=tuple(line),
        shares=_in_order(
            Share(queue=queue, type=of, flow=_flow(counters)) for (queue, of), counters in by_share.items()
        ),
        standing=_standing(ever, apart),
    )


class _Sum:
    """The sum of many counters."""

    def __init__(self) -> None:
        self._counts = Counters()
        self._wait, self._run, self._total = HistogramSum(), HistogramSum(), HistogramSum()

    def add(self, counters: Counters) -> None:
        self._counts.add_counts(counters)
        self._wait.add(counters.wait)
        self._run.add(counters.run)
        self._total.add(counters.total)

    def whole(self) -> Counters:
        wait, run, total = self._wait.whole(), self._run.whole(), self._total.whole()
        return structs.replace(self._counts, wait=wait, run=run, total=total)


def _name(place: Place, by: By) -> tuple[str | None, str | None]:
    queue, of_type = place
    return None if by == "type" else queue, None if by == "queue" else of_type


def _flow(counters: Counters) -> Flow:
    ended = counters.ended
    return Flow(
        submitted=counters.submitted,
        completed=ended.get(Status.COMPLETED, 0),
        failed=ended.get(Status.FAILED, 0),
        dead_letter=ended.get(Status.DEAD_LETTER, 0),
        cancelled=ended.get(Status.CANCELLED, 0),
        retried=counters.retried,
        wait=Latency.of(counters.wait),
        run=Latency.of(counters.run),
        total=Latency.of(counters.total),
    )


def _in_order(shares: Iterable[Share]) -> tuple[Share, ...]:
    """Returns the shares in which something happened, those with the most finished jobs first."""
    with_flow = (each for each in shares if each.flow != Flow())
    return tuple(sorted(with_flow, key=lambda each: (-each.flow.finished, each.queue or "", each.type or "")))


def _standing(
    ever: Iterable[tuple[Place, Counters]], apart: Iterable[tuple[Place, State, int]]
) -> tuple[Standing, ...]:
    sums: dict[Place, Counters] = {}
    for place, counters in ever:
        (sums.get(place) or sums.setdefault(place, Counters())).add_counts(counters)
    counted: dict[Place, dict[State, int]] = {place: {} for place in sums}
    for place, state, jobs in apart:
        # If a place has no sums, its counters could not be read. Its open jobs are in the answer nevertheless.
        counted.setdefault(place, {})[state] = jobs
    return tuple(
        Standing(queue=queue, type=of_type, states=states)
        for queue, of_type in sorted(counted)
        if (states := _states(sums.get((queue, of_type), Counters()), counted[queue, of_type]))
    )


def _states(counters: Counters, apart: dict[State, int]) -> dict[State, int]:
    ready = max(0, counters.open - sum(apart.values()))
    found = apart | {State.SCHEDULED: apart.get(State.SCHEDULED, 0) + ready}
    found |= {State(status.value): counters.kept(status) for status in TERMINAL}
    return {state: found[state] for state in State if found.get(state)}
