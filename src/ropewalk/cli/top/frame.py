"""Lays a snapshot out as text of a given width and height: header, plot, tables and a footer with the keys."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from ropewalk.cli import render
from ropewalk.cli.top import figures, sections
from ropewalk.cli.top.sections import QUIET, Cell, Column, Section
from ropewalk.cli.top.snapshot import Snapshot
from ropewalk.domain.jobs.record import DEFAULT_TENANT

GAP: Final = 2
TALL: Final = 34
"""Height of the frame from which on the plot is three lines high."""
LEAST: Final = (3, 3, 2, 1)
"""Rows that each table gets before any gets more, if there is not room for all."""
KEYS: Final = "q quit   ↑↓ select a queue   p pause or resume it   + − refresh"


def frame(
    snapshot: Snapshot, *, width: int, height: int | None, every: float | None, selected: int | None = None
) -> Text:
    """Return the frame; a `height` of None means as many lines as are needed.

    `every` is the interval that the footer shows; it is None for a single frame, which has no footer.
    """
    lines = [_title(snapshot, width, every), _numbers(snapshot, width)]
    plot = [Text(), *_plot(snapshot, width, height), Text()]
    tables = [
        sections.queues(snapshot, selected),
        sections.types(snapshot),
        sections.workers(snapshot),
        sections.failures(snapshot),
    ]
    footer = [] if every is None else [_footer(snapshot, width)]
    if _room(height, [*lines, *plot, *footer], len(tables)) >= sum(map(_needs, tables)):
        lines += plot
    while len(tables) > 1 and _room(height, [*lines, *footer], len(tables)) < sum(map(_needs, tables)):
        tables.pop()
    room = None if height is None else _room(height, [*lines, *footer], len(tables))
    for number, (table, rows) in enumerate(zip(tables, _shares(tables, room), strict=True)):
        lines += [*([Text()] if number else []), *_table(table, rows, width)]
    if height is not None:
        lines = lines[: height - len(footer)]
        lines += [Text()] * (height - len(footer) - len(lines))
    return Text("\n").join([*(_fitted(line, width) for line in lines), *footer])


def _room(height: int | None, lines: Sequence[Text], tables: int) -> int:
    """Return how many lines are left for rows of tables, each of which has a line of titles and an empty line.

    If there is no row for every table, the frame leaves out the plot first, and then tables, the lowest first.
    """
    return sys.maxsize if height is None else height - len(lines) - 2 * tables + 1


def _needs(table: Section) -> int:
    """Return how many lines a table needs: one row, and a line that says how many more rows there are."""
    return 2 if table.whole and len(table.rows) > 1 else 1


def _title(snapshot: Snapshot, width: int, every: float | None) -> Text:
    whose = "" if snapshot.tenant == DEFAULT_TENANT else f"  tenant {render.safe(snapshot.tenant)}"
    left = Text.assemble(("ropewalk", "bold"), f"  {render.safe(snapshot.url)}{whose}")
    refresh = "" if every is None else f"   every {every:g} s"
    return _apart(left, Text(f"{figures.clock(snapshot.now)} UTC{refresh}", QUIET), width)


def _numbers(snapshot: Snapshot, width: int) -> Text:
    """Return the line of totals, with as many of them as fit."""
    alive = [each for each in snapshot.workers if each.state != "dead"]
    taken, slots = sum(min(each.held, each.slots) for each in alive), sum(each.slots for each in alive)
    text = Text()
    for name, value in (
        ("finished", figures.rate(snapshot.finished_per_second)),
        ("queued", figures.rate(snapshot.submitted_per_second)),
        ("ready", figures.count(snapshot.total("ready"))),
        ("running", figures.count(snapshot.total("running"))),
        ("workers", figures.count(len(alive))),
        ("slots", f"{taken}/{slots}"),
    ):
        gap = " " * GAP if text else ""
        if text.cell_len + len(f"{gap}{name} {value}") <= width:
            text.append(gap).append(f"{name} ", QUIET).append(value, "bold")
    return text


def _plot(snapshot: Snapshot, width: int, height: int | None) -> list[Text]:
    """Return the plot of finished jobs, with its highest rate and its time span beside it."""
    tall = 3 if height is None or height >= TALL else 1
    highest = max(snapshot.line, default=0.0)
    labels = [
        f"{figures.rate(highest)} at most",
        f"last {figures.age(len(snapshot.line) * snapshot.slice_us)}",
    ]
    label_width = max(map(len, labels)) if tall > 1 else len("   ".join(labels))
    thick = figures.thickness(len(snapshot.line), width - label_width - GAP)
    drawn = figures.bars(snapshot.line, height=tall, thick=thick)
    beside = [labels[0], *[""] * (tall - 2), labels[1]] if tall > 1 else ["   ".join(labels)]
    return [Text.assemble((bar, "cyan"), " " * GAP, (said, QUIET)) for bar, said in zip(drawn, beside, strict=True)]


def _footer(snapshot: Snapshot, width: int) -> Text:
    if snapshot.trouble is not None:
        return _fitted(Text(render.safe(snapshot.trouble), "red"), width)
    if snapshot.next_fire is None:
        return _fitted(Text(KEYS, QUIET), width)
    name, at = snapshot.next_fire
    fires = f"{render.safe(name)} fires in {figures.age(max(0, at - snapshot.now))}"
    return _apart(Text(KEYS, QUIET), Text(fires, QUIET), width)


def _shares(tables: Sequence[Section], room: int | None) -> list[int]:
    """Return how many rows each table gets: first what it needs, then LEAST, and the rest from top to bottom."""
    wanted = [max(1, len(table.rows)) for table in tables]
    if room is None:
        return wanted
    given = [0] * len(tables)
    for least in ([_needs(table) for table in tables], LEAST, wanted):
        for number, want in enumerate(wanted):
            given[number] += max(0, min(want, least[number], given[number] + room - sum(given)) - given[number])
    return given


def _table(section: Section, rows: int, width: int) -> list[Text]:
    columns = [(number, each) for number, each in enumerate(section.columns) if width >= each.from_width]
    fixed = sum(each.width + GAP for _, each in columns) - GAP
    widths = {number: each.width + (max(0, width - fixed) if each.grows else 0) for number, each in columns}
    lines = [Text((" " * GAP).join(_placed(each.title, each, widths[number]) for number, each in columns), "bold dim")]
    if not section.rows:
        return [*lines, Text(section.nothing, QUIET)][: rows + 1]
    counted = section.whole and len(section.rows) > rows > 1
    fits = max(0, rows - counted)
    first = max(0, (section.selected or 0) - fits + 1)  # the selected row is always shown
    for number, row in enumerate(section.rows[first : first + fits], first):
        lines.append(_row(row, columns, widths, chosen=number == section.selected))
    return [*lines, Text(f"and {len(section.rows) - fits} more", QUIET)] if counted and rows else lines


def _row(row: Sequence[Cell], columns: Sequence[tuple[int, Column]], widths: dict[int, int], *, chosen: bool) -> Text:
    text = Text(style="reverse" if chosen else "")
    for place, (number, column) in enumerate(columns):
        text.append(" " * GAP if place else "")
        text.append(_placed(row[number].text, column, widths[number]), row[number].style or None)
    if not chosen:
        text.rstrip()
    return text


def _placed(text: str, column: Column, width: int) -> str:
    """Cut or pad a text to exactly this width on the screen."""
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1).rstrip() + "…"
    room = " " * (width - cell_len(text))
    return text + room if column.side == "left" else room + text


def _apart(left: Text, right: Text, width: int) -> Text:
    """Put two texts at both ends of a line; the right one is left out if there is no room."""
    room = width - left.cell_len - right.cell_len
    return Text.assemble(left, " " * room, right) if room >= GAP else _fitted(left, width)


def _fitted(line: Text, width: int) -> Text:
    fitted = line.copy()
    fitted.truncate(width, overflow="ellipsis")
    return fitted
