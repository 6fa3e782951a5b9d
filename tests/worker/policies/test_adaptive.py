"""R14: the delay doubles while things go badly and shrinks step by step when they do not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.errors import InvalidInput
from ropewalk.worker.policies.backpressure import AdaptiveDelay, Load, Throttle


def load(**known: Any) -> Load:
    nothing: dict[str, Any] = {
        **dict.fromkeys(("slots", "running", "buffered", "settled", "failed", "last_claim"), 0),
        **dict.fromkeys(("handler_seconds", "settle_seconds")),
        "lag_seconds": 0.0,
    }
    return Load(**(nothing | known))


def test_up_by_a_factor_and_down_by_steps() -> None:
    throttle = Throttle(AdaptiveDelay(failures=None, lag=0.05, first=0.1, factor=3, step=0.25, max=1))
    lags = [0.05, 0.06, 0.06, 0.06, 0.06, 0.06, 0.01, 0.01, 0.06, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01]
    delays = [0, 0.1, 0.3, 0.9, 1, 1, 0.75, 0.5, 1, 0.75, 0.5, 0.25, 0, 0, 0, 0]
    assert [throttle(load(lag_seconds=lag)) for lag in lags] == delays


def test_the_share_of_failures_is_that_since_the_last_poll() -> None:
    throttle = Throttle(AdaptiveDelay(failures=0.5, first=1, step=1))
    settled_and_failed = [(10, 5), (20, 11), (20, 11), (30, 16), (40, 26)]
    delays = [throttle(load(settled=settled, failed=failed)) for settled, failed in settled_and_failed]
    assert delays == [0, 1, 0, 0, 1], "half of them is not too many; nothing settled is no failure"


@pytest.mark.parametrize(
    ("watched", "bad"),
    [
        ({"handler": 1}, {"handler_seconds": 1.1}),
        ({"settle": 0.01}, {"settle_seconds": 0.02}),
        ({"lag": 0.01}, {"lag_seconds": 0.02}),
    ],
)
def test_each_signal_alone_is_enough(watched: dict[str, float], bad: dict[str, float]) -> None:
    assert Throttle(AdaptiveDelay(failures=None, **watched))(load(**bad)) == 0.1
    assert Throttle(AdaptiveDelay())(load(**bad)) == 0, "one that is not watched is not"
    assert Throttle(AdaptiveDelay(failures=None, **watched))(load()) == 0, "what is not known is not bad"


@given(st.lists(st.booleans(), max_size=60))
def test_it_stays_within_its_bounds(bad: list[bool]) -> None:
    throttle, delay = Throttle(AdaptiveDelay(failures=None, lag=1, first=0.5, step=0.5, max=8)), 0.0
    for each in bad:
        delay = min(8.0, max(0.5, 2 * delay)) if each else max(0.0, delay - 0.5)
        assert throttle(load(lag_seconds=2.0 if each else 0.0)) == delay


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"failures": 1.0}, "failures"),
        ({"failures": None}, "failures"),
        ({"factor": 1}, "factor"),
        ({"first": 0}, "first"),
        ({"step": 0}, "step"),
        ({"max": 0}, "max"),
        ({"lag": -1}, "lag"),
    ],
)
def test_one_that_cannot_work_is_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        AdaptiveDelay(**wrong)
    assert refused.value.field == named
