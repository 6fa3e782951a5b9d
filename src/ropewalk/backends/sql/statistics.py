"""Counts what a transaction did: it writes one row for each lane, which no transaction that moves jobs changes later.

The rows are folded later (domain.statistics.counters.fold) into sums of minutes, of hours and of all time. A fold takes
only rows that no other fold has locked; if another fold has locked a sum, it writes a second sum beside it, and the
next fold adds them up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.backends.sql.damage import Rows, ids_of
from ropewalk.backends.sql.lanes import KEYS_MAX, LaneBook
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import State, Status
from ropewalk.domain.jobs.transition import AttemptTiming, Effects, Settlement
from ropewalk.domain.statistics.aggregation import StatsQuery, Window, aggregate
from ropewalk.domain.statistics.counters import EVER, MINUTES_KEPT_US, Counters, CountersByLane, fold, minute_of
from ropewalk.domain.statistics.statistics import Statistics
from ropewalk.domain.time import HOUR, MINUTE, Instant, Span

_EMPTY: Final = Counters()
_places = Rows("lane", tuple[int, str, str])
_owners = Rows("lane", tuple[int, str])
_rows = Rows("counters", tuple[int, Instant, int, Counters])
_sums = Rows("counter_sums", tuple[int, Span, Instant, int, Counters])
_told = Rows("counters", tuple[Span | None, Instant, int, Counters])
_apart = msgspec.json.Decoder(list[tuple[int, State, int]])
_endings = Rows("job", tuple[int, Status, int])


class Done(Struct):
    """Completed leases, column by column, as `complete_plain` returns them; the times are by the store's clock."""

    seqs: list[int]
    lanes: list[int]
    waits: list[Span]
    runs: list[Span]
    totals: list[Span]


class CounterBook:
    """The counters of one transaction."""

    def __init__(self, tx: Tx, lanes: LaneBook) -> None:
        self._tx = tx
        self._lanes = lanes
        self._counters = CountersByLane[int]()

    def submitted(self, lanes: Iterable[tuple[int, int]]) -> None:
        """Counts submitted jobs, as pairs of a lane and a number."""
        for lane, jobs in lanes:
            self._counters.of(_above(lane)).submitted += jobs

    def completed(self, done: Done, settlements: Iterable[Settlement]) -> None:
        """Counts those of the settlements that completed their jobs."""
        if not done.seqs:
            return
        _as_measured(done, {each.seq: each.timing for each in settlements})
        lane = done.lanes[0]
        if done.lanes.count(lane) == len(done.lanes):  # most batches are of one type
            self._counters.completed(_above(lane), waits=done.waits, runs=done.runs, totals=done.totals)
            return
        by_lane: dict[int, list[tuple[Span, Span, Span]]] = {}
        for lane, *spans in zip(done.lanes, done.waits, done.runs, done.totals, strict=True):
            by_lane.setdefault(_above(lane), []).append((spans[0], spans[1], spans[2]))
        for lane, of_lane in by_lane.items():
            waits, runs, totals = zip(*of_lane, strict=True)
            self._counters.completed(lane, waits=waits, runs=runs, totals=totals)

    def moved(self, job: JobRecord, effects: Effects) -> None:
        """Counts a move of a job."""
        lane = self._lanes.id_of(self._tx, job.lane.above)
        self._counters.moved(lane, job, effects, self._tx.now)

    def gone(self, endings: Iterable[tuple[int, Status, int]]) -> None:
        """Counts finished jobs that are deleted, as (lane, status, number)."""
        for lane, status, jobs in endings:
            gone = self._counters.of(_above(lane)).gone
            gone[status] = gone.get(status, 0) + jobs

    def flush(self) -> None:
        counters, self._counters = self._counters, CountersByLane[int]()
        counted = [(lane, _text(counters)) for lane, counters in counters.by_lane.items() if counters != _EMPTY]
        rows = [(minute_of(self._tx.now), *of_lane) for of_lane in counted]
        self._tx.run_rows_later(self._tx.sql.insert_counters, rows)


def count_submitted(tx: Tx, lanes: LaneBook, ids: Sequence[int]) -> None:
    """Counts new jobs. `ids` contains the lane of each of them."""
    book = CounterBook(tx, lanes)
    book.submitted(Counter(ids).items())
    book.flush()


def count_removed(tx: Tx, lanes: LaneBook, seqs: str) -> None:
    """Counts finished jobs that are about to be deleted."""
    book = CounterBook(tx, lanes)
    book.gone(_endings.decode(tx, tx.value(tx.sql.finished_counts_of, (seqs,))))
    book.flush()


def fold_counters(tx: Tx, keep_us: Span | None, limit: int) -> int:
    """Folds the oldest counters into sums, and deletes sums that are past their retention. Returns the number of folded
    rows."""
    found = tx.value(tx.sql.oldest_counters, (limit,))
    rows = _rows.decode(tx, found)
    # Rows that cannot be read are deleted, too, because they would come first for ever.
    if numbers := ids_of(found) if tx.careful else [number for number, *_ in rows]:
        tx.run(tx.sql.delete_counters, (_json(numbers),))
        _add_to_sums(tx, [(at, lane, counters) for _, at, lane, counters in rows])
    for span, kept_us in ((MINUTE, MINUTES_KEPT_US), (HOUR, keep_us)):
        if kept_us is not None:
            tx.run(tx.sql.forget_sums, (span, tx.now - kept_us - span, limit))
    return len(rows)


def stats(tx: Tx, tenant: str, query: StatsQuery) -> Statistics:
    """Returns the statistics of a tenant."""
    window = Window.of(query, tx.now)
    whose = (tenant, query.queue, query.type)
    places = {lane: (queue, of) for lane, queue, of in _places.decode(tx, tx.value(tx.sql.lanes_counted, whose))}
    lanes = _json(list(places))
    found = _told.decode(tx, tx.value(tx.sql.counters_of, (lanes, window.span_us, window.since, window.end)))
    apart = Counter[tuple[int, State]]()
    for lane, state, jobs in _apart.decode(tx.value(tx.sql.not_ready, (tenant, tx.now))):
        apart[_above(lane), state] += jobs
    return aggregate(
        query,
        window,
        within=[
            (at, places[lane], counters)
            for span, at, lane, counters in found
            if span != EVER and window.since <= at < window.end
        ],
        ever=[(places[lane], counters) for span, _, lane, counters in found if span is None or span == EVER],
        apart=[(places[lane], state, jobs) for (lane, state), jobs in apart.items() if lane in places],
    )


def tenants_with(tx: Tx, ended: Status, types: Sequence[str]) -> list[str]:
    """Returns the tenants that have jobs of these types with this end, from the counters and without reading jobs."""
    tenants = dict(_owners.decode(tx, tx.value(tx.sql.lanes_of_types, (KEYS_MAX, _json(types)))))
    counted = Counter[str]()
    for span, _, lane, counters in _told.decode(tx, tx.value(tx.sql.counters_of, (_json(list(tenants)), EVER, 0, 0))):
        assert span is None or span == EVER
        counted[tenants[lane]] += counters.kept(ended)
    return sorted(tenant for tenant, jobs in counted.items() if jobs)


def _add_to_sums(tx: Tx, rows: Iterable[tuple[Instant, int, Counters]]) -> None:
    folded = fold(rows)
    held = _sums.decode(tx, tx.value(tx.sql.sums_to_fold, (_json(list(folded)),)))
    for _, span, at, lane, counters in held:
        folded[span, at, lane].add(counters)
    tx.run(tx.sql.delete_sums, (_json([number for number, *_ in held]),))
    kept = [
        (*key, _text(counters)) for key, counters in folded.items() if key[0] != EVER or counters.counts_existing_jobs
    ]
    tx.run_rows(tx.sql.insert_sums, kept)


def _as_measured(done: Done, timings: Mapping[int, AttemptTiming | None]) -> None:
    """Replaces the times of the store by those that the worker measured, which are more exact."""
    measured = [timings[seq] for seq in done.seqs]
    done.waits = [
        wait if each is None else max(0, wait) + each.waited_us for wait, each in zip(done.waits, measured, strict=True)
    ]
    done.runs = [held if each is None else each.ran_us for held, each in zip(done.runs, measured, strict=True)]


def _above(lane: int) -> int:
    """Returns the lane in which a job is counted: jobs with a limit key count with those of their type without one."""
    return lane if lane < KEYS_MAX else lane // KEYS_MAX


def _text(counters: Counters) -> str:
    return msgspec.json.encode(counters).decode()


def _json(values: object) -> str:
    return msgspec.json.encode(values).decode()
