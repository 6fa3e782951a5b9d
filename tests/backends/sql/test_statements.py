"""No SQL is kept that nobody uses: every statement of the manifest is sent, every part is in some statement."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from ropewalk.backends.postgres.columns import PARTS as POSTGRES_COLUMNS
from ropewalk.backends.sql.statements import Statements
from ropewalk.backends.sqlite.columns import PARTS as SQLITE_COLUMNS

BACKENDS: Final = Path(__file__).resolve().parents[3] / "src" / "ropewalk" / "backends"
MADE: Final = {"sqlite": SQLITE_COLUMNS, "postgres": POSTGRES_COLUMNS}


def test_every_statement_is_sent() -> None:
    python = "\n".join(file.read_text(encoding="utf-8") for file in BACKENDS.rglob("*.py"))
    assert [name for name in Statements.__struct_fields__ if not re.search(rf"\.{name}\b", python)] == []


@pytest.mark.parametrize("dialect", MADE)
def test_every_part_is_in_some_statement(dialect: str) -> None:
    sql = "\n".join(file.read_text(encoding="utf-8") for file in (BACKENDS / dialect / "sql").glob("*.sql"))
    written = [name.removesuffix("_carefully") for name in re.findall(r"^-- part: (\w+)$", sql, re.MULTILINE)]
    assert [name for name in (*written, *MADE[dialect]) if not re.search(rf"/\* see {name}\b", sql)] == []
