"""Tables of what tests measured (tests/tables.py)."""

from __future__ import annotations

import pytest

from tests.tables import PROPERTY, NoteRow, lines_of


def test_a_column_is_as_wide_as_its_widest_cell() -> None:
    rows = [{"worker": "idle", "resumed_after": "0.5 s"}, {"worker": "two processes", "exits": "0"}]
    assert lines_of(rows) == [
        "worker         resumed after  exits",
        "idle           0.5 s",
        "two processes                 0",
    ]


def test_a_row_travels_with_the_report_of_its_test(note_row: NoteRow, request: pytest.FixtureRequest) -> None:
    note_row("Rows that travel with a report", number=1)
    assert request.node.user_properties == [(PROPERTY, ["Rows that travel with a report", {"number": "1"}])]
    request.node.user_properties.clear()  # or every run would show it
