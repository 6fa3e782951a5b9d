"""Histograms: exact where they promise it, and never far off elsewhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.domain.statistics.histogram import Histogram, HistogramSum, bounds
from ropewalk.domain.time import SPAN_MAX

spans = st.one_of(st.integers(0, 40), st.integers(0, SPAN_MAX), st.integers(0, 56).map(lambda bits: 1 << bits))
lists = st.lists(spans, max_size=40)
RANKS = (1, 50, 90, 95, 99, 100)


@given(lists)
def test_count_sum_and_maximum_are_exact(measured: list[int]) -> None:
    told = Histogram.of(measured)
    assert (told.count, told.sum, told.max) == (len(measured), sum(measured), max(measured, default=0))


@given(spans)
def test_a_span_is_within_the_bounds_of_its_bucket(span: int) -> None:
    [bucket] = Histogram.of([span]).counts
    first, last = bounds(bucket)
    assert first <= span <= last
    assert last - first <= first / 8


@given(st.integers(0, 448))
def test_buckets_follow_one_another_without_gap(bucket: int) -> None:
    assert bounds(bucket)[1] + 1 == bounds(bucket + 1)[0]


@given(lists, lists, lists)
def test_adding_is_the_histogram_of_all_in_any_order(a: list[int], b: list[int], c: list[int]) -> None:
    left, right = Histogram.of(a), Histogram.of(b)
    left.add(Histogram.of(b))
    left.add(Histogram.of(c))
    right.add(Histogram.of(c))
    right.add(Histogram.of(a))
    assert left == right == Histogram.of(a + b + c)


@given(st.lists(lists, max_size=5))
def test_a_pile_is_the_histogram_of_all(parts: list[list[int]]) -> None:
    pile = HistogramSum()
    for part in parts:
        pile.add(Histogram.of(part))
    assert pile.whole() == Histogram.of([span for part in parts for span in part])


@given(lists)
def test_noted_one_by_one_is_the_same(measured: list[int]) -> None:
    told = Histogram()
    for span in measured:
        told.note(span)
    assert told == Histogram.of(measured)


@given(st.lists(spans, min_size=1, max_size=200))
def test_a_percentile_is_at_most_a_sixteenth_off(measured: list[int]) -> None:
    exact = [sorted(measured)[-(-rank * len(measured) // 100) - 1] for rank in RANKS]
    for told, truth in zip(Histogram.of(measured).percentiles(*RANKS), exact, strict=True):
        assert abs(told - truth) <= truth / 16 + 0.5, f"{told} for {truth}"
        assert told <= max(measured)


def test_nothing_measured_is_zero() -> None:
    assert Histogram().percentiles(50, 99) == (0, 0)
    assert Histogram().mean == 0
