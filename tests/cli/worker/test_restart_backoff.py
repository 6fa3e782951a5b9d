"""Pauses before a replacement, and the end of hope, to the second."""

from __future__ import annotations

from ropewalk.cli.worker.fleet import FleetHealth, RestartBackoff


def test_pauses_double_up_to_half_a_minute() -> None:
    patience = RestartBackoff()
    assert [patience.pause_after(0.5) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_minute_of_health_begins_anew() -> None:
    patience = RestartBackoff()
    assert [patience.pause_after(lived) for lived in (0, 0, 59.9, 60, 0)] == [1, 2, 4, 1, 2]


def test_hope_is_lost_after_a_minute_without_anybody_who_worked() -> None:
    hope = FleetHealth(now=100)
    assert not hope.lost(159.9)
    assert hope.lost(160)


def test_who_serves_for_five_seconds_works() -> None:
    hope = FleetHealth(now=0)
    hope.served(since=50, now=54.9)
    hope.served(since=None, now=54.9)
    assert hope.lost(60)
    hope.served(since=50, now=55)
    assert not hope.lost(114.9)
    assert hope.lost(115)
