"""R12: a rate in one worker, against a rule that looks at all starts there were."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.definitions.policies import RateLimited
from ropewalk.domain.limits.rate import ALGORITHMS, Algorithm, Rate
from ropewalk.domain.time import SECOND
from ropewalk.errors import InvalidInput
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.policies import rate as pacing
from ropewalk.worker.policies.rate import AWAY_US_MAX, RatePolicyState
from tests.worker.policies.jobs import claimed, held
from tests.worker.policies.oracles import exceeded, left


def per_label(limit: int, window: float, **more: Any) -> RateLimited:
    return RateLimited(limit, window, per=lambda offer: offer.fairness, **more)


def one(number: int = 1) -> Attempt:
    return held(claimed(number))[0]


algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)


@algorithms
@given(data=st.data())
def test_one_rate_for_all(algorithm: Algorithm, data: st.DataObject) -> None:
    """Exactly as much room as the rule leaves beside those that were let in; it is never exceeded."""
    policy = RateLimited(data.draw(st.integers(1, 4)), data.draw(st.sampled_from([0.000_007, 0.00001])), algorithm)
    pace, now, starts, inside = RatePolicyState(policy), 0, list[int](), list[Attempt]()
    for _ in range(data.draw(st.integers(1, 40))):
        now += data.draw(st.integers(0, 6))
        room = left(policy.rate, starts, now) - len(inside)
        assert (pace.room(now), pace.has_room(None, now)) == (room, room > 0)
        match data.draw(st.sampled_from(["in", "begin", "leave"])):
            case "in" if room > 0:
                inside.append(one())
                pace.let_in(inside[-1], None)
            case "begin" if inside:
                pace.began(inside.pop(0), now)
                starts.append(now)
            case "leave" if inside:
                inside.pop()
                pace.keep(set(inside))
            case _:
                pass
    assert exceeded(policy.rate, starts) == []


@algorithms
@given(data=st.data())
def test_a_rate_for_each_key_and_one_for_all(algorithm: Algorithm, data: st.DataObject) -> None:
    """Both tiers hold, and a key without room takes nothing from the others."""
    total = Rate(data.draw(st.integers(1, 5)), per=0.00001, algorithm=data.draw(st.sampled_from(ALGORITHMS)))
    policy = per_label(data.draw(st.integers(1, 3)), 0.000_007, algorithm=algorithm, total=total)
    pace, now, starts, of_key = RatePolicyState(policy), 0, list[int](), dict[str, list[int]](a=[], b=[])
    for _ in range(data.draw(st.integers(1, 40))):
        now += data.draw(st.integers(0, 4))
        key = data.draw(st.sampled_from(["a", "b", None]))
        room = left(total, starts, now) > 0 and (key is None or left(policy.rate, of_key[key], now) > 0)
        assert pace.has_room(key, now) == room
        if room:
            attempt = one()
            pace.let_in(attempt, key)
            pace.began(attempt, now)
            starts.append(now)
            if key is not None:
                of_key[key].append(now)
    assert exceeded(total, starts) == []
    assert [exceeded(policy.rate, each) for each in of_key.values()] == [[], []]


@algorithms
def test_room_comes_when_it_says(algorithm: Algorithm) -> None:
    pace = RatePolicyState(RateLimited(2, 10, algorithm))
    for attempt in held(claimed(1), claimed(2)):
        pace.let_in(attempt, None)
        pace.began(attempt, 3 * SECOND)
    at = pace.room_at(3 * SECOND)
    assert at == {"sliding": 13, "fixed": 10, "token": 8}[algorithm] * SECOND
    assert (pace.room(at - 1), pace.room(at)) in ((0, 1), (0, 2))
    assert pace.room_at(at) is None


@algorithms
def test_those_sent_away_come_back_one_after_another(algorithm: Algorithm) -> None:
    """Each at its turn, not all of them when there is room for one."""
    pace = RatePolicyState(per_label(1, 2, algorithm=algorithm))
    attempt = one()
    pace.let_in(attempt, "a")
    pace.began(attempt, 0)
    assert [pace.away_us("a", 0) / SECOND for _ in range(7)] == [2, 4, 6, 8, 10, 10, 10], "or soon enough for others"
    assert pace.away_us("b", 0) == 1, "not asked for one that has room, but no harm"


def test_promises_are_forgotten_when_their_time_has_come() -> None:
    pace = RatePolicyState(per_label(1, 2))
    attempt = one()
    pace.let_in(attempt, "a")
    pace.began(attempt, 0)
    assert [pace.away_us("a", 0) for _ in range(2)] == [2 * SECOND, 4 * SECOND]
    assert pace.away_us("a", 5 * SECOND) == 1, "nobody came back"
    assert AWAY_US_MAX == 10 * SECOND


def test_keys_that_say_nothing_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "KEYS_TIDIED_FROM", 10)
    pace = RatePolicyState(per_label(1, 2))
    for number in range(100):
        attempt = one(number)
        pace.let_in(attempt, str(number))
        pace.away_us(str(number), number * SECOND)
        pace.began(attempt, number * SECOND)
    assert len(pace._states) <= 11
    assert len(pace._promised) <= 11
    assert Counter(pace._let_in_of) == Counter()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"window": 0}, "window"),
        ({"max": 0}, "max"),
        ({"algorithm": "leaky"}, "algorithm"),
        ({"per": "customer"}, "per"),
        ({"total": Rate(1, per=1)}, "total"),
        ({"per": str, "total": 5}, "total"),
        ({"limit": 5000}, "count"),
    ],
)
def test_a_rate_that_cannot_be_is_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        RateLimited(**{"limit": 1, "window": 1, **wrong})
    assert refused.value.field == named
