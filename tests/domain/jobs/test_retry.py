"""Backoff: every strategy, the merge of its levels, and bounds that hold for any numbers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, structs

from ropewalk.domain.jobs.retry import BUILT_IN, Backoff, ResolvedBackoff, delay, resolve
from ropewalk.domain.time import DAY, HOUR, SECOND, SPAN_MAX
from ropewalk.errors import InvalidInput

FIELDS = structs.asdict(BUILT_IN)
OTHER: dict[str, Any] = {"strategy": "linear", "initial_us": 7, "max_us": 70, "multiplier": 3.0, "jitter": 0.25}


def waits(backoff: Backoff, *, attempts: int, roll: float = 0.0) -> list[float]:
    """Seconds after each of the first failures."""
    return [delay(resolve(backoff), attempt, roll) / SECOND for attempt in range(1, attempts + 1)]


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (Backoff(), [1, 2, 4, 8, 16]),
        (Backoff.constant(5), [5, 5, 5, 5, 5]),
        (Backoff.constant(2 * 3600), [7200, 7200, 7200, 7200, 7200]),
        (Backoff.linear(2, max=7), [2, 4, 6, 7, 7]),
        (Backoff.exponential(1, multiplier=3, max=20), [1, 3, 9, 20, 20]),
        (Backoff.exponential(1, multiplier=1), [1, 1, 1, 1, 1]),
        (Backoff.exponential(0), [0, 0, 0, 0, 0]),
        (Backoff.exponential(10, max=0), [0, 0, 0, 0, 0]),
        (Backoff.linear(timedelta(minutes=1)), [60, 120, 180, 240, 300]),
        (Backoff(strategy="custom", initial_us=3 * SECOND), [3, 3, 3, 3, 3]),
    ],
)
def test_strategies(backoff: Backoff, expected: list[float]) -> None:
    assert waits(backoff, attempts=5) == expected


@pytest.mark.parametrize(("jitter", "roll", "expected"), [(0, 0.9, 10), (0.5, 0.5, 7.5), (1, 0.5, 5), (1, 0, 10)])
def test_jitter_shortens_the_wait_by_its_share(jitter: float, roll: float, expected: float) -> None:
    assert waits(Backoff.constant(10, jitter=jitter), attempts=1, roll=roll) == [expected]


backoffs = st.builds(
    ResolvedBackoff,
    strategy=st.sampled_from(["constant", "linear", "exponential", "custom"]),
    initial_us=st.integers(0, DAY),
    max_us=st.integers(0, 30 * DAY),
    multiplier=st.one_of(st.floats(1, 10), st.floats(1, 1e300), st.integers(1, 10**6)),
    jitter=st.floats(0, 1),
)
rolls = st.floats(0, 1, exclude_max=True)


@given(backoffs, st.integers(1, 10**9), rolls)
def test_a_wait_stays_within_its_bounds(backoff: ResolvedBackoff, attempt: int, roll: float) -> None:
    longest = delay(backoff, attempt, roll=0.0)
    assert 0 <= longest <= backoff.max_us
    # A µs of slack: both sides are rounded.
    assert longest * (1 - backoff.jitter) - 1 <= delay(backoff, attempt, roll) <= longest


@given(backoffs, st.integers(1, 10**6))
def test_waits_never_shrink(backoff: ResolvedBackoff, attempt: int) -> None:
    assert delay(backoff, attempt, 0.0) <= delay(backoff, attempt + 1, 0.0)


@pytest.mark.parametrize("multiplier", [1.01, 1.5, 2, 1e6, 1e308])
def test_growth_reaches_the_maximum_however_slow_or_fast(multiplier: float) -> None:
    backoff = ResolvedBackoff(strategy="exponential", multiplier=multiplier)
    assert delay(backoff, 10_000, roll=0.0) == HOUR


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_comes_from_the_first_level_that_sets_it(name: str) -> None:
    top, bottom = Backoff(**{name: OTHER[name]}), Backoff(**{**OTHER, name: FIELDS[name]})
    assert structs.asdict(resolve(top, bottom)) == OTHER
    assert structs.asdict(resolve(None, top, None)) == {**FIELDS, name: OTHER[name]}


def test_no_level_at_all_is_the_built_in() -> None:
    assert resolve() == resolve(None) == resolve(Backoff()) == BUILT_IN


def test_zero_is_a_setting_not_an_absence() -> None:
    assert resolve(Backoff(jitter=0.0, initial_us=0), Backoff(jitter=1.0, initial_us=5)) == structs.replace(
        BUILT_IN, jitter=0.0, initial_us=0
    )
    assert Backoff().jitter is UNSET


@pytest.mark.parametrize(
    ("field", "good", "bad", "told"),
    [
        ("initial_us", [0, SPAN_MAX], [-1, SPAN_MAX + 1], "between 0 and"),
        ("max_us", [0, SPAN_MAX], [-1, SPAN_MAX + 1], "between 0 and"),
        ("multiplier", [1, 1.0, 1e308], [0.999, 0, -2, float("nan"), float("inf")], "at least 1"),
        ("jitter", [0, 0.0, 1, 1.0], [-0.001, 1.001, float("nan"), float("inf")], "from 0 to 1"),
    ],
)
def test_both_sides_of_every_bound(field: str, good: list[Any], bad: list[Any], told: str) -> None:
    for value in good:
        assert getattr(Backoff(**{field: value}), field) == value
    for value in bad:
        with pytest.raises(InvalidInput, match=f"^{field.removesuffix('_us')}=.*{told}") as refused:
            Backoff(**{field: value})
        assert refused.value.field == field.removesuffix("_us")
