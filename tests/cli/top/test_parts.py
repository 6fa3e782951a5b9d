"""H5: the numbers, bars, rates and keys of `ropewalk top`."""

from __future__ import annotations

import pytest

from ropewalk.cli.top import figures
from ropewalk.cli.top.controls import INTERVALS, View, keys_in, moved
from ropewalk.cli.top.rates import RateMeter
from ropewalk.domain.statistics.statistics import Flow, Share, Slice, Statistics
from ropewalk.domain.time import DAY, HOUR, MINUTE, SECOND


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (99_999, "99,999"), (100_000, "100 k"), (1_234_567, "1.23 M"), (12_345_678_901, "12.3 G")],
)
def test_counts(number: int, text: str) -> None:
    assert figures.count(number) == text


@pytest.mark.parametrize(
    ("per_second", "text"),
    [
        (0.0, "0/s"),
        (1.0, "1.00/s"),
        (9.996, "10.0/s"),
        (99.96, "100/s"),
        (12_345.6, "12,346/s"),
        (0.5, "30.0/min"),
        (0.01, "36.0/h"),
    ],
)
def test_rates(per_second: float, text: str) -> None:
    assert figures.rate(per_second) == text


@pytest.mark.parametrize(
    ("span", "took", "ago"),
    [
        (0, "0 µs", "0.0 s"),
        (999, "999 µs", "0.0 s"),
        (1500, "1.50 ms", "0.0 s"),
        (345_678, "346 ms", "0.3 s"),
        (12 * SECOND, "12.0 s", "12 s"),
        (119 * SECOND, "119 s", "119 s"),
        (2 * MINUTE, "2.00 min", "2 min"),
        (3 * HOUR, "3.00 h", "3 h"),
        (3 * DAY, "3.00 d", "3 d"),
    ],
)
def test_spans(span: int, took: str, ago: str) -> None:
    assert (figures.span(span), figures.age(span)) == (took, ago)


def test_bars() -> None:
    assert figures.bars([0, 1, 4, 8], height=1, thick=1) == [" ▁▄█"]
    assert figures.bars([0, 0.001, 4, 8], height=2, thick=2) == ["      ██", "  ▁▁████"]
    assert figures.bars([0, 0], height=1, thick=1) == ["  "]
    assert figures.bars([], height=1, thick=1) == [""]
    assert [figures.thickness(30, width) for width in (10, 60, 100, 500)] == [1, 2, 3, 4]
    assert figures.thickness(0, 100) == 4


def statistics(since: int, *finished: int, submitted: int = 0) -> Statistics:
    """A minute a number; all of it of one type."""
    flows = [Flow(completed=each, submitted=each + submitted) for each in finished]
    whole = Flow(completed=sum(finished), submitted=sum(flow.submitted for flow in flows))
    return Statistics(
        since=since * MINUTE,
        until=(since + len(finished)) * MINUTE,
        slice_us=MINUTE,
        flow=whole,
        line=tuple(Slice(at=(since + number) * MINUTE, flow=flow) for number, flow in enumerate(flows)),
        shares=(Share(queue=None, type="t", flow=whole),),
        standing=(),
    )


def test_the_first_look_tells_the_average_since_something_happened() -> None:
    rates = RateMeter().measure(statistics(10, 0, 0, 60, 60), 0.0, 13 * MINUTE)
    assert (rates.finished, rates.submitted, rates.types) == (2.0, 2.0, {"t": 2.0})
    assert RateMeter().measure(statistics(10, 0, 0), 0.0, 12 * MINUTE).finished == 0


def test_later_looks_tell_what_happened_in_between() -> None:
    meter = RateMeter()
    meter.measure(statistics(10, 0, 100), 0.0, 12 * MINUTE)
    assert meter.measure(statistics(10, 0, 150), 1.0, 12 * MINUTE).finished == 50
    rates = meter.measure(statistics(10, 0, 250, submitted=10), 2.0, 12 * MINUTE)
    assert (rates.finished, rates.submitted, rates.types) == (75, 85, {"t": 75})
    for second in range(3, 20):
        rates = meter.measure(statistics(10, 0, 250, submitted=10), float(second), 12 * MINUTE)
    assert rates.finished == 0, "what is long ago counts no more"


def test_a_window_that_moves_is_no_slump() -> None:
    """What fell out of it did not come back: the pace stays until two looks can be compared again."""
    meter = RateMeter()
    meter.measure(statistics(10, 1000, 100), 0.0, 12 * MINUTE)
    assert meter.measure(statistics(10, 1000, 140), 1.0, 12 * MINUTE).finished == 40
    assert meter.measure(statistics(11, 160, 0), 2.0, 12 * MINUTE).finished == 40
    assert meter.measure(statistics(11, 160, 30), 3.0, 12 * MINUTE).finished == 30


def test_keys() -> None:
    assert keys_in("q") == ["quit"]
    assert keys_in("\x1b[A\x1b[Bkj") == ["up", "down", "up", "down"]
    assert keys_in("x\x1b[Cp+-=_\x1bOA\x1bOB\x03") == [
        *("pause", "faster", "slower", "faster", "slower", "up", "down", "quit"),
    ]
    assert keys_in("") == []


def test_what_keys_do() -> None:
    view = View()
    assert moved(view, "up", 0) == view
    first = moved(view, "down", 3)
    assert first.selected == 0
    assert [moved(View(selected=at), "down", 3).selected for at in (0, 1, 2, 9)] == [1, 2, 2, 2]
    assert [moved(View(selected=at), "up", 3).selected for at in (2, 1, 0)] == [1, 0, 0]
    assert moved(View(selected=2), "pause", 3) == View(selected=2)
    assert moved(View(selected=2), "down", 0).selected is None
    assert moved(View(every=1.0), "faster", 0).every == 0.5
    assert moved(View(every=0.5), "faster", 0).every == 0.5
    assert moved(View(every=1.5), "slower", 0).every == 2.0
    assert moved(View(every=INTERVALS[-1]), "slower", 0).every == INTERVALS[-1]
