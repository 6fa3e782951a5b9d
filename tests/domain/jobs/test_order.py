"""Who is claimed first, with ageing and without."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.domain.jobs.flags import KEYED, STRICT_ORDER
from ropewalk.domain.jobs.order import AGEING_STEP, OrderKey, Priority, order_key
from ropewalk.domain.time import HOUR, SECOND

priorities = st.integers(-1000, 1000)
times = st.integers(0, 4_000_000_000 * SECOND)


def test_levels_by_name() -> None:
    assert [*sorted(Priority, reverse=True)] == [200, 100, 0, -100, -200]
    assert max(Priority) is Priority.CRITICAL


def test_each_point_of_priority_is_worth_36_seconds() -> None:
    assert order_key(0, HOUR, 0) == order_key(Priority.HIGH, 2 * HOUR, 0) == OrderKey(0, HOUR)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((Priority.HIGH, HOUR - 1), (Priority.NORMAL, 0)),
        ((Priority.NORMAL, 0), (Priority.HIGH, HOUR + 1)),
        ((Priority.NORMAL, 0), (Priority.NORMAL, 1)),
    ],
    ids=["an hour ahead", "but no more", "then by age"],
)
def test_with_ageing_nothing_starves(first: tuple[int, int], second: tuple[int, int]) -> None:
    assert order_key(*first, 0) < order_key(*second, 0)


@given(priorities, times, priorities, times)
def test_ageing_is_the_time_ahead(p: int, t: int, q: int, u: int) -> None:
    ahead = (t - u) < (p - q) * AGEING_STEP
    assert (order_key(p, t, 0) < order_key(q, u, 0)) == ahead


@given(priorities, times, priorities, times)
def test_strict_order_is_priority_then_time(p: int, t: int, q: int, u: int) -> None:
    strict = STRICT_ORDER | KEYED
    assert (order_key(p, t, strict) < order_key(q, u, strict)) == ((-p, t) < (-q, u))
