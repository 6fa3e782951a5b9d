"""Tables of what tests measured, printed when the run is over, also where tests ran side by side.

A test asks for the fixture `note_row` and calls it once for each row: `note_row("Outages", away="10 s")`. Rows of one
title are one table, whatever test they come from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import pytest

PROPERTY: Final = "table row"
Table: TypeAlias = list[dict[str, str]]


class NoteRow(Protocol):
    def __call__(self, title: str, **cells: object) -> None: ...


@pytest.fixture
def note_row(record_property: Callable[[str, object], None]) -> NoteRow:
    """Adds a row to the table of this title. Columns are in the order of the first row."""

    def note(title: str, **cells: object) -> None:
        # A report travels between processes: only plain values do.
        record_property(PROPERTY, [title, {name: str(cell) for name, cell in cells.items()}])

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for title, rows in _tables(terminalreporter).items():
        terminalreporter.section(title, sep="─")
        for line in lines_of(rows):
            terminalreporter.write_line(line)


def lines_of(rows: Table) -> list[str]:
    """The table with its head, each column as wide as its widest cell."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[name.replace("_", " ") for name in names], *([row.get(name, "") for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _tables(terminal: pytest.TerminalReporter) -> dict[str, Table]:
    found: dict[str, Table] = {}
    for reports in terminal.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            for name, value in report.user_properties:
                if name == PROPERTY:
                    title, row = _row(value)
                    found.setdefault(title, []).append(row)
    return found


def _row(value: Any) -> tuple[str, dict[str, str]]:
    title, row = value
    return title, dict(row)
