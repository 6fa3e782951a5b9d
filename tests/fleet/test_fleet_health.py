"""Pauses before a replacement, and when a fleet gives up, to the second."""

from __future__ import annotations

from ropewalk.fleet.fleet import FleetHealth, pause_before_restart


def test_pauses_double_up_to_half_a_minute() -> None:
    pause = pause_before_restart()
    assert [pause.after(0.5) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_minute_of_health_begins_anew() -> None:
    pause = pause_before_restart()
    assert [pause.after(lived) for lived in (0, 0, 59.9, 60, 0)] == [1, 2, 4, 1, 2]


def test_a_fleet_is_lost_after_a_minute_of_failures() -> None:
    health = FleetHealth()
    assert not health.lost(1000)
    health.failed(100, store_away=False)
    health.failed(150, store_away=False)
    assert not health.lost(159.9)
    assert health.lost(160)


def test_who_serves_for_five_seconds_works() -> None:
    health = FleetHealth()
    health.failed(0, store_away=False)
    health.served(since=50, now=54.9)
    health.served(since=None, now=54.9)
    assert health.lost(60)
    health.served(since=50, now=55)
    assert not health.lost(1000)
    health.failed(55, store_away=False)
    assert not health.lost(114.9)
    assert health.lost(115)


def test_a_store_that_is_away_is_waited_for_by_a_fleet_that_has_worked() -> None:
    health = FleetHealth()
    health.failed(0, store_away=True)
    assert health.lost(60)
    health.served(since=60, now=70)
    health.failed(80, store_away=True)
    assert not health.lost(1000)
