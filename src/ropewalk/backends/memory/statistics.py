"""Counters of the jobs that moved. They are collected by minute, and folded later into sums of minutes, of hours and of
all time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.statistics.aggregation import Place, StatsQuery, Window, aggregate
from ropewalk.domain.statistics.counters import EVER, MINUTES_KEPT_US, Counters, CountersByLane, Folded, fold, minute_of
from ropewalk.domain.statistics.statistics import Statistics
from ropewalk.domain.time import HOUR, MINUTE, Instant, Span

Lane = tuple[str, str, str]
"""(tenant, queue, type)"""


class Counts:
    """All counters."""

    def __init__(self) -> None:
        self._minutes: dict[Instant, CountersByLane[Lane]] = {}
        """The counters that are not folded yet, by minute."""
        self._folded: Folded[Lane] = {}

    def submitted(self, job: JobRecord) -> None:
        self._minute(job.created_at).of(_lane(job)).submitted += 1

    def moved(self, job: JobRecord, effects: Effects, now: Instant) -> None:
        self._minute(now).moved(_lane(job), job, effects, now)

    def removed(self, job: JobRecord) -> None:
        gone = self._folded.setdefault((EVER, 0, _lane(job)), Counters()).gone
        gone[job.status] = gone.get(job.status, 0) + 1

    def stats(self, tenant: str, query: StatsQuery, live: Iterable[JobRecord], now: Instant) -> Statistics:
        """Returns statistics. Open jobs are counted by a scan, finished ones from the counters."""
        window = Window.of(query, now)
        mine = (job for job in live if _wanted(query, tenant, _lane(job)))
        apart = Counter((_place(_lane(job)), job.state_at(now)) for job in mine)
        return aggregate(
            query,
            window,
            within=[
                (at, _place(lane), counters)
                for at, lane, counters in self._by(window.span_us)
                if window.since <= at < window.end and _wanted(query, tenant, lane)
            ],
            ever=[(_place(lane), counters) for _, lane, counters in self._by(EVER) if _wanted(query, tenant, lane)],
            apart=[(place, state, jobs) for (place, state), jobs in apart.items()],
        )

    def fold(self, keep_us: Span | None, limit: int, now: Instant) -> int:
        rows = list(islice(self._unfolded(), limit))
        for key, counters in fold(rows).items():
            self._folded.setdefault(key, Counters()).add(counters)
        for at, lane, _ in rows:
            del self._minutes[at].by_lane[lane]
        self._minutes = {at: of_minute for at, of_minute in self._minutes.items() if of_minute.by_lane}
        self._folded = {
            key: counters for key, counters in self._folded.items() if key[0] != EVER or counters.counts_existing_jobs
        }
        for span, kept_us in ((MINUTE, MINUTES_KEPT_US), (HOUR, keep_us)):
            if kept_us is not None:
                self._forget(span, now - kept_us - span, limit)
        return len(rows)

    def _forget(self, span: Span, upto: Instant, limit: int) -> None:
        old = (key for key in self._folded if key[0] == span and key[1] <= upto)
        for key in list(islice(old, limit)):
            del self._folded[key]

    def _minute(self, now: Instant) -> CountersByLane[Lane]:
        at = minute_of(now)
        return self._minutes.get(at) or self._minutes.setdefault(at, CountersByLane())

    def _by(self, wanted: Span) -> Iterator[tuple[Instant, Lane, Counters]]:
        yield from ((at, lane, counters) for (span, at, lane), counters in self._folded.items() if span == wanted)
        yield from self._unfolded()

    def _unfolded(self) -> Iterator[tuple[Instant, Lane, Counters]]:
        for at, of_minute in self._minutes.items():
            yield from ((at, lane, counters) for lane, counters in of_minute.by_lane.items())


def _lane(job: JobRecord) -> Lane:
    return job.tenant, job.queue, job.type


def _place(lane: Lane) -> Place:
    return lane[1], lane[2]


def _wanted(query: StatsQuery, tenant: str, lane: Lane) -> bool:
    owner, queue, job_type = lane
    return owner == tenant and query.queue in (None, queue) and query.type in (None, job_type)
