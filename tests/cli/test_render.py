"""What is printed: safe for terminals, readable for people, one document for machines."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import click
import pytest

from ropewalk.cli import render
from ropewalk.domain.jobs.states import State


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 ms"),
        (0.42, "420 ms"),
        (1.0, "1.0 s"),
        (119, "119.0 s"),
        (120, "2 min"),
        (7200, "2 h"),
        (200_000, "2 d"),
    ],
)
def test_spans(seconds: float, said: str) -> None:
    assert render.span(seconds) == said


def test_control_characters_are_shown_not_sent() -> None:
    assert render.safe("a\x1b[2Jb\nc\u202ed") == "a\\x1b[2Jb\\nc\\u202ed"
    assert render.safe("häßlich 字") == "häßlich 字"
    assert render.safe_lines("a\x07\nb") == "a\\x07\nb"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        (Decimal("1.10"), "1.10"),
        (b"ab", "YWI="),
        (State.FAILED, "failed"),
        ({1: 2}, {"1": 2}),
        ({"at": {3.5: float("nan")}}, {"at": {"3.5": None}}),
        ([ValueError("boom")], ["boom"]),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        ("half \ud800", "'half \\ud800'"),
    ],
)
def test_json_for_whatever_a_job_may_hold(value: object, told: object) -> None:
    assert json.loads(render.to_json(value)) == told


def test_tables_are_aligned_by_what_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    render.echo_table(("STATE", "N"), [(render.state(State.FAILED), "1"), (render.state(State.DEAD_LETTER), "22")])
    assert capsys.readouterr().out == "STATE        N\nfailed       1\ndead_letter  22\n"


def test_every_state_has_a_colour() -> None:
    assert set(render.COLOURS) == set(State)


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[bool | None] = []
    monkeypatch.setattr(click, "echo", lambda _text, *, color: said.append(color))
    monkeypatch.delenv("NO_COLOR", raising=False)
    render.echo("x")
    monkeypatch.setenv("NO_COLOR", "1")
    render.echo("x")
    assert said == [None, False]
