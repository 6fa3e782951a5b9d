"""O4, H5: `ropewalk stats` draws a line over time, a row for each type, and where jobs stand."""

from __future__ import annotations

import pytest

from ropewalk import App
from ropewalk.cli.stats_view import rate_text, sparkline
from tests.cli.conftest import Run


@pytest.fixture
def some(app: App) -> None:
    done = app.sync.enqueue("add", {"a": 1, "b": 2})
    app.sync.complete(done.id, 3)
    failed = app.sync.enqueue("divide", {"a": 1, "b": 0}, queue="sums")
    app.sync.fail(failed.id, "no")
    app.sync.enqueue("add", {"a": 1, "b": 2}, delay=600)


@pytest.mark.usefixtures("some")
def test_the_last_hour(ropewalk: Run) -> None:
    lines = ropewalk("stats").out.splitlines()
    assert lines[0].endswith("UTC, in steps of 2 min")
    assert [line.split()[0] for line in lines[2:5]] == ["submitted", "completed", "failed"]
    assert [line.split()[2] for line in lines[2:5]] == ["3", "1", "1"]
    table = [line.split() for line in lines[6:10]]
    assert table[0][:5] == ["TYPE", "SUBMITTED", "COMPLETED", "FAILED", "RATE"]
    assert [row[:3] for row in table[1:]] == [["add", "2", "1"], ["divide", "1", "1"], ["all", "3", "1"]]
    assert [line.split() for line in lines[11:]] == [
        ["NOW", "delayed", "completed", "failed"],
        ["default/add", "1", "1"],
        ["sums/divide", "1"],
        ["all", "1", "1", "1"],
    ]


@pytest.mark.usefixtures("some")
def test_as_json(ropewalk: Run) -> None:
    told = ropewalk("stats", "--last", "7d", "--by", "both", "--queue", "sums", "--type", "divide", "--json").json
    assert (told["flow"]["failed"], told["flow"]["total"]["count"], told["states"]) == (1, 1, {"failed": 1})
    assert [(share["queue"], share["type"]) for share in told["shares"]] == [("sums", "divide")]
    assert told["slice_us"] == 6 * 3_600_000_000
    assert told["since"].endswith("Z")
    assert sum(each["flow"]["submitted"] for each in told["line"]) == 1


@pytest.mark.usefixtures("some")
def test_nothing_of_somebody_else(ropewalk: Run) -> None:
    shown = ropewalk("stats", "--tenant", "acme", "--last", "90s").out.splitlines()
    assert shown[1:] == ["", "nothing happened"]


@pytest.mark.parametrize("last", ["soon", "0", "-1h", "1y"])
@pytest.mark.usefixtures("some")
def test_a_duration_that_is_none(ropewalk: Run, last: str) -> None:
    refused = ropewalk("stats", f"--last={last}")
    assert refused.code == 2
    assert f"{last!r} is not a duration like 90s, 30min, 1h or 7d" in refused.err


def test_a_sparkline_shows_what_is_not_nothing() -> None:
    assert sparkline([0, 1, 500, 1000]) == "·▁▄█"
    assert sparkline([0, 0]) == "··"
    assert sparkline([]) == ""


@pytest.mark.parametrize(
    ("count", "seconds", "said"),
    [
        (7200, 3600, "2.0/s"),
        (3600 * 12_345, 3600, "12 345/s"),
        (60, 3600, "1.0/min"),
        (20, 3600, "20/h"),
        (1, 86_400, "0.0/h"),
    ],
)
def test_a_pace_is_told_in_a_unit_one_can_picture(count: int, seconds: float, said: str) -> None:
    assert rate_text(count, seconds) == said
