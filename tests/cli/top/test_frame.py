"""H5: what `ropewalk top` shows, to the letter."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import structs
from rich.cells import cell_len

from ropewalk.cli import render
from ropewalk.cli.top.frame import frame
from ropewalk.cli.top.snapshot import Snapshot, document
from tests.cli.top.moments import BUSY, QUIET, job_type, queue, worker

FRAMES = Path(__file__).parent / "frames"


def drawn(snapshot: Snapshot, width: int, height: int | None, selected: int | None = None) -> list[str]:
    every = None if height is None else 1.0
    return frame(snapshot, width=width, height=height, every=every, selected=selected).plain.split("\n")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
@pytest.mark.parametrize("name", ["quiet", "busy"])
def test_a_frame_is_as_written_down(name: str, width: int, height: int) -> None:
    """In frames/, to be looked at."""
    lines = drawn({"quiet": QUIET, "busy": BUSY}[name], width, height)
    expected = (FRAMES / f"{name}-{width}x{height}.txt").read_text(encoding="utf-8")
    assert "\n".join(line.rstrip() for line in lines) + "\n" == expected


@pytest.mark.parametrize(("width", "height"), [(40, 10), (60, 15), (80, 24), (100, 30), (200, 60), (20, 3)])
@pytest.mark.parametrize("snapshot", [QUIET, BUSY], ids=["quiet", "busy"])
def test_a_frame_fits_its_screen(snapshot: Snapshot, width: int, height: int) -> None:
    lines = drawn(snapshot, width, height, selected=4)
    assert len(lines) == height
    assert max(map(cell_len, lines)) <= width


def test_a_small_screen_shows_rows_of_the_first_tables() -> None:
    """Without the plot, and without the tables that would have no row."""
    lines = [line.rstrip() for line in drawn(BUSY, 50, 12)]
    expected = (FRAMES / "busy-50x12.txt").read_text(encoding="utf-8")
    assert "\n".join(lines) + "\n" == expected


@pytest.mark.parametrize("height", range(6, 24))
@pytest.mark.parametrize("width", [50, 80, 200])
def test_no_table_is_only_its_titles(width: int, height: int) -> None:
    lines = [line.split() for line in drawn(BUSY, width, height)]
    for titles, below in pairwise(lines):
        if titles and titles[0] in ("QUEUE", "TYPE", "WORKER", "FAILED"):
            assert below and below[0] != "and", f"{titles} stands alone at {width}x{height}"
    assert ["QUEUE"] in [line[:1] for line in lines]


def test_a_single_frame_has_all_rows_and_no_keys() -> None:
    lines = drawn(BUSY, 100, None)
    assert sum("send_mail" in line for line in lines) == 1 + len(BUSY.failures)
    assert not any("quit" in line for line in lines)
    assert "every" not in lines[0]


def test_what_does_not_fit_is_counted_and_what_is_chosen_is_shown() -> None:
    many = structs.replace(
        BUSY,
        queues=tuple(queue(f"queue-{number}") for number in range(40)),
        types=tuple(job_type(f"type-{number}", 1, 1.0) for number in range(20)),
        workers=tuple(worker(number) for number in range(1, 6)),
    )
    lines = drawn(many, 80, 24)
    assert [line for line in lines if line.startswith("and ")] == ["and 36 more", "and 18 more", "and 4 more"]
    assert sum(line.startswith("queue-") for line in lines) == 4
    chosen = [line.split()[0] for line in drawn(many, 80, 24, selected=20) if line.startswith("queue-")]
    assert chosen == ["queue-17", "queue-18", "queue-19", "queue-20"]


def test_styles() -> None:
    """What needs a look stands out, zeros step back, the chosen row is turned."""
    shown = frame(BUSY, width=120, height=40, every=1.0, selected=1)
    styled = {(shown.plain[span.start : span.end].strip(), str(span.style)) for span in shown.spans}
    assert {("paused", "yellow"), ("dead", "red"), ("draining", "yellow"), ("7", "red"), ("0", "dim")} <= styled
    [reverse] = [span for span in shown.spans if str(span.style) == "reverse"]
    assert shown.plain[reverse.start : reverse.end].startswith("mail")


def test_the_document_has_times_that_others_can_read() -> None:
    told = json.loads(render.to_json(document(BUSY)))
    assert (told["now"], told["failures"][1]["at"]) == ("2026-05-01T12:30:15Z", "2026-05-01T12:30:14Z")
    assert told["next_fire"] == {"name": "nightly", "at": "2026-05-01T12:40:15Z"}
    assert told["types"][0]["run"]["p50_us"] == 12_345
    assert json.loads(render.to_json(document(QUIET)))["next_fire"] is None


def test_a_store_that_is_away() -> None:
    away = structs.replace(BUSY, trouble="the store does not answer, trying again: \x1b[31mboo")
    assert drawn(away, 80, 24)[-1] == r"the store does not answer, trying again: \x1b[31mboo"


def test_no_stored_text_speaks_to_the_terminal() -> None:
    assert "\a" not in "".join(drawn(BUSY, 120, 40))
    assert r"re\x07ports" in "".join(drawn(BUSY, 120, 40))
