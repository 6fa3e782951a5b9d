"""Which stretch of time an answer is about, and what counters add up to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.domain.jobs.states import State, Status
from ropewalk.domain.statistics.aggregation import BY_MINUTE_MAX, StatsQuery, Window, aggregate
from ropewalk.domain.statistics.counters import EVER, Counters, fold
from ropewalk.domain.statistics.histogram import Histogram
from ropewalk.domain.time import DAY, HOUR, MINUTE, SECOND, SPAN_MAX

NOW = 500_000 * HOUR + 34 * MINUTE + 30 * SECOND
counters = st.builds(
    Counters,
    submitted=st.integers(0, 9),
    ended=st.dictionaries(st.sampled_from([Status.COMPLETED, Status.FAILED]), st.integers(1, 9)),
    retried=st.integers(0, 9),
    restarted=st.integers(0, 9),
    gone=st.dictionaries(st.just(Status.FAILED), st.integers(1, 9)),
    wait=st.lists(st.integers(0, HOUR), max_size=5).map(Histogram.of),
)
rows = st.lists(st.tuples(st.integers(0, 200).map(lambda minute: minute * MINUTE), st.sampled_from("ab"), counters))


@given(
    last_us=st.integers(1, SPAN_MAX),
    ago_us=st.none() | st.integers(-DAY, 40 * DAY),
    slices=st.integers(1, 1000),
    now=st.integers(NOW, NOW + 2 * HOUR),
)
def test_a_window_holds_what_was_asked_for(last_us: int, ago_us: int | None, slices: int, now: int) -> None:
    until = None if ago_us is None else now - ago_us
    window = Window.of(StatsQuery(last_us=last_us, until=until, slices=slices), now)
    end = now if until is None else min(until, now)
    assert window.since <= end - last_us
    assert end <= window.until <= now
    assert window.until <= window.end <= window.until + window.span_us
    assert window.slice_us % window.span_us == window.since % window.slice_us == window.end % window.span_us == 0
    assert len(range(window.since, window.end, window.slice_us)) <= slices + 2
    assert end - last_us - window.since < window.slice_us, "no further back than it must"


def test_what_is_short_and_not_long_ago_is_told_by_the_minute() -> None:
    def span(last_us: int, ago_us: int = 0) -> int:
        return Window.of(StatsQuery(last_us=last_us, until=NOW - ago_us), NOW).span_us

    assert span(BY_MINUTE_MAX) == MINUTE
    assert span(BY_MINUTE_MAX + 1) == HOUR
    assert span(HOUR, DAY - HOUR - MINUTE) == MINUTE
    assert span(HOUR, DAY - HOUR + MINUTE) == HOUR


@given(rows)
def test_folded_counters_say_the_same_in_every_span(given_rows: list[tuple[int, str, Counters]]) -> None:
    whole, by_span = Counters(), {MINUTE: Counters(), HOUR: Counters(), EVER: Counters()}
    for _, _, counters in given_rows:
        whole.add(counters)
    for (span, at, _), counters in fold(given_rows).items():
        by_span[span].add(counters)
        assert at % (span or 1) == 0
    assert by_span[MINUTE] == by_span[HOUR] == whole
    assert (by_span[EVER].open, by_span[EVER].kept(Status.FAILED)) == (whole.open, whole.kept(Status.FAILED))
    assert by_span[EVER].wait == Histogram()


@given(rows)
def test_slices_and_shares_add_up_to_the_whole(given_rows: list[tuple[int, str, Counters]]) -> None:
    asked = StatsQuery(last_us=200 * MINUTE, by="both", slices=7)
    window = Window.of(asked, 201 * MINUTE)
    told = aggregate(
        asked,
        window,
        within=[(at, ("q", lane), counters) for at, lane, counters in given_rows if at >= window.since],
        ever=[],
        apart=[],
    )
    for parts in (told.line, told.shares):
        for name in ("submitted", "completed", "failed", "retried", "finished"):
            assert sum(getattr(part.flow, name) for part in parts) == getattr(told.flow, name)
        assert max((part.flow.wait.max_us for part in parts), default=0) == told.flow.wait.max_us
    finished = [share.flow.finished for share in told.shares]
    assert finished == sorted(finished, reverse=True)


def test_what_is_left_of_all_that_are_open_is_ready() -> None:
    ever = Counters(submitted=10, ended={Status.COMPLETED: 3, Status.FAILED: 2}, restarted=1, gone={Status.FAILED: 2})
    asked = StatsQuery(last_us=HOUR)
    apart = [(("q", "t"), State.RUNNING, 1), (("q", "t"), State.SCHEDULED, 2), (("q", "t"), State.DELAYED, 1)]
    told = aggregate(asked, Window.of(asked, NOW), within=[], ever=[(("q", "t"), ever)], apart=apart)
    assert told.states == {State.DELAYED: 1, State.SCHEDULED: 4, State.RUNNING: 1, State.COMPLETED: 3}


def test_a_tally_that_stands_for_nothing() -> None:
    assert not Counters().counts_existing_jobs
    assert not Counters(submitted=2, ended={Status.COMPLETED: 2}, gone={Status.COMPLETED: 2}).counts_existing_jobs
    assert Counters(submitted=1).counts_existing_jobs
    assert Counters(submitted=1, ended={Status.COMPLETED: 1}).counts_existing_jobs
