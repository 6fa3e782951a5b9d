"""R13: rates, against oracles that remember every start."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from ropewalk import InvalidInput, Rate
from ropewalk.domain.limits.rate import (
    ALGORITHMS,
    SLIDING_COUNT_MAX,
    Algorithm,
    RateState,
    idle_at,
    room_at,
    take,
    used,
)
from ropewalk.domain.time import SECOND, Instant

START = 1_700_000_000 * SECOND
algorithms = st.sampled_from(ALGORITHMS)
windows = st.sampled_from((0.000_003, 0.000_007, 1.0, 1.5))
steps = st.lists(
    st.tuples(st.sampled_from((0, 1, 2, 3, 7, 250_000, 500_000, 1_000_000, 1_500_000, 2_000_000)), st.integers(0, 6)),
    max_size=40,
)


def allowed(rate: Rate, starts: Sequence[Instant], at: Instant) -> int:
    """How many may start at `at`, after these: the rule itself, as it is said."""
    window = rate.window_us
    match rate.algorithm:
        case "sliding":
            return rate.count - sum(at - window < start <= at for start in starts)
        case "fixed":
            return rate.count - sum(start // window == at // window for start in starts)
        case "token":
            level, last = Fraction(rate.count), START
            for start in starts:
                level = min(Fraction(rate.count), level + Fraction((start - last) * rate.count, window)) - 1
                last = start
            return int(min(Fraction(rate.count), level + Fraction((at - last) * rate.count, window)))


@given(algorithms, st.integers(1, 5), windows, steps)
def test_it_grants_what_the_rule_allows_and_says_when_there_is_more(
    algorithm: Algorithm, count: int, per: float, steps: list[tuple[int, int]]
) -> None:
    rate = Rate(count, per=per, algorithm=algorithm)
    state: RateState | None = None
    starts: list[Instant] = []
    now = START
    for passed, wanted in steps:
        now += passed
        expected = min(wanted, allowed(rate, starts, now))
        taken = take(rate, state, now, wanted)
        assert taken.granted == expected
        starts += [now] * expected
        state = json.decode(json.encode(taken.state), type=RateState)
        left = allowed(rate, starts, now)
        assert (taken.next_at is None) == (left > 0)
        if taken.next_at is not None:
            assert allowed(rate, starts, taken.next_at) > 0, "there is room then"
            assert allowed(rate, starts, taken.next_at - 1) == 0, "and not before"
        rested = max(now, idle_at(rate, state))
        assert take(rate, state, rested, 99).granted == count, "an idle state is as good as none"


@given(algorithms, st.integers(1, 5), windows, steps, st.integers(1, 5))
def test_it_says_when_there_is_room_for_several(
    algorithm: Algorithm, count: int, per: float, steps: list[tuple[int, int]], several: int
) -> None:
    rate = Rate(count, per=per, algorithm=algorithm)
    state: RateState | None = None
    starts: list[Instant] = []
    now, several = START, min(several, count)
    for passed, wanted in steps:
        now += passed
        taken = take(rate, state, now, wanted)
        state, starts = taken.state, starts + [now] * taken.granted
        assert used(rate, state, now) == count - allowed(rate, starts, now)
        at = room_at(rate, state, now, several)
        assert allowed(rate, starts, at) >= several, "there is room then"
        assert at == now or allowed(rate, starts, at - 1) < several, "and not before"


@given(algorithms, st.integers(1, 5), st.integers(1, 5), windows, st.integers(0, 2_000_000))
def test_a_count_that_changes_goes_on_with_what_was_used(
    algorithm: Algorithm, before: int, after: int, per: float, passed: int
) -> None:
    state = take(Rate(before, per=per, algorithm=algorithm), None, START, before).state
    rate = Rate(after, per=per, algorithm=algorithm)
    taken = take(rate, state, START, 99)
    assert taken.granted == max(0, after - before)
    later = take(rate, taken.state, START + passed, 99)
    if later.next_at is not None:
        assert take(rate, later.state, later.next_at, 1).granted == 1
        assert take(rate, later.state, later.next_at - 1, 1).granted == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_clock_read_before_the_last_use_is_taken_for_its_time(algorithm: Algorithm) -> None:
    """Who locked later may have begun earlier: even across the boundary of a window."""
    rate = Rate(2, per=10, algorithm=algorithm)
    boundary = START - START % rate.window_us + rate.window_us
    used = take(rate, None, boundary + 1, 2).state
    again = take(rate, used, boundary - 1, 2)
    assert again.granted == 0
    assert again.next_at is not None
    assert again.next_at > boundary + 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_clock_that_was_set_back_stops_nothing(algorithm: Algorithm) -> None:
    rate = Rate(2, per=10, algorithm=algorithm)
    used = take(rate, None, START, 2).state
    assert take(rate, used, START - 3600 * SECOND, 2).granted == 2


def test_a_timedelta_and_its_seconds_are_the_same() -> None:
    assert Rate(5, per=timedelta(minutes=1)) == Rate(5, per=60)
    assert Rate(5, per=timedelta(minutes=1)).window_us == 60 * SECOND


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0, "per": 1}, "count=0 must be at least 1"),
        ({"count": True, "per": 1}, "count=True must be"),
        ({"count": 1.5, "per": 1}, "count=1.5 must be"),
        ({"count": 1, "per": 0}, "per=0 must be more than 0 seconds"),
        ({"count": 1, "per": -1}, "per=-1 is negative"),
        ({"count": 1, "per": 1, "algorithm": "leaky"}, "algorithm='leaky' must be 'sliding', 'fixed' or 'token'"),
        ({"count": SLIDING_COUNT_MAX + 1, "per": 1}, "count=1001 is over 1000, as a sliding window remembers"),
    ],
)
def test_what_is_no_rate_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Rate(**arguments)  # type: ignore[arg-type]  # wrong on purpose
