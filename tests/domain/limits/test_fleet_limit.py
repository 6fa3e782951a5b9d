"""R13: which limits apply to a lane, and what room they leave."""

from __future__ import annotations

import pytest

from ropewalk.domain.limits.fleet_limit import FlowLimit, LaneName, LimitId, LimitKind, LimitRules, Measure
from ropewalk.domain.limits.headroom import BUSY_US, SOON_US, HeadroomByLane, LimitHeadroom
from ropewalk.domain.limits.rate import Rate

NOW = 1_000_000_000


def limit(kind: LimitKind, name: str, **fields: object) -> FlowLimit:
    return FlowLimit(tenant="acme", kind=kind, name=name, **fields)  # type: ignore[arg-type]  # any of its fields


RULES = LimitRules(
    [limit("queue", "q"), limit("type", "t"), limit("key", "*"), limit("key", "c:*"), limit("key", "c:1")]
)


@pytest.mark.parametrize(
    ("lane", "names"),
    [
        (LaneName("acme", "q", "t", "c:1"), ["q", "t", "c:1"]),
        (LaneName("acme", "q", "u", "c:2"), ["q", "c:*"]),
        (LaneName("acme", "r", "t", "d"), ["t", "*"]),
        (LaneName("acme", "r", "u", ""), []),
        (LaneName("zeta", "q", "t", "c:1"), []),
        (LaneName("acme", "t", "q", ""), []),
    ],
)
def test_which_limits_apply(lane: LaneName, names: list[str]) -> None:
    assert [measure.limit[2] for measure in RULES.on(lane)] == names


def test_a_family_counts_each_key_apart() -> None:
    running = {
        LaneName("acme", "q", "t", "c:2"): 2,
        LaneName("acme", "r", "t", "c:2"): 1,
        LaneName("acme", "q", "u", "c:3"): 4,
    }
    in_use = RULES.in_use(running)
    family: LimitId = ("acme", "key", "c:*")
    assert (in_use[Measure(family, "c:2")], in_use[Measure(family, "c:3")]) == (3, 4)
    assert in_use[Measure(("acme", "queue", "q"), "q")] == 6


def headroom(in_use: int = 0, **fields: object) -> LimitHeadroom:
    made = limit("key", "k", **fields)
    return LimitHeadroom(made, Measure(made.id, "k"), in_use, None, NOW)


def test_room_is_what_both_leave() -> None:
    both = headroom(1, concurrency=3, rate=Rate(5, per=10))
    for _ in range(2):
        assert not both.full
        both.given += 1
    assert both.full
    assert both.room_at == NOW + SOON_US


def test_a_limit_that_was_lowered_below_what_runs_is_full() -> None:
    assert headroom(5, concurrency=2).full


def test_a_lane_has_room_when_all_its_limits_have() -> None:
    tight, wide = headroom(1, concurrency=1), headroom(concurrency=9)
    by_lane: HeadroomByLane[str] = HeadroomByLane(NOW)
    by_lane.put("both", [tight, wide])
    by_lane.put("wide", [wide])
    assert (by_lane.admits("both"), by_lane.admits("wide"), by_lane.admits("unlimited")) == (False, True, True)


def test_when_to_ask_again_is_the_earliest_of_the_latest() -> None:
    slow, slower = headroom(rate=Rate(1, per=10)), headroom(rate=Rate(1, per=20))
    for each in (slow, slower):
        each.given = 1
    by_lane: HeadroomByLane[str] = HeadroomByLane(NOW)
    by_lane.put("free", [headroom(concurrency=1)])
    assert by_lane.room_at() is None
    by_lane.put("twice", [slow, slower])
    assert by_lane.room_at() == slower.room_at
    by_lane.put("once", [slow])
    assert by_lane.room_at() == slow.room_at
    by_lane.pass_over("busy")
    assert by_lane.room_at() == NOW + BUSY_US
