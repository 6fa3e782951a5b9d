"""Migrations are read in order, applied once, and a store from the future is left alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ropewalk.backends.sql.migrations import Migration, missing, read_migrations
from ropewalk.errors import SchemaMismatch

SCRIPT = """\
-- compat: breaking
-- a comment; with a semicolon;
CREATE TABLE a (
    x, -- why
    y
);
INSERT INTO a
VALUES (1, 2);
"""
FIRST = Migration(version=1, name="first", compat="breaking", statements=("CREATE TABLE a (x)",))
SECOND = Migration(version=2, name="second", compat="additive", statements=())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "package_of_a_test" / "migrations"
    folder.mkdir(parents=True)
    (tmp_path / "package_of_a_test" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "package_of_a_test", raising=False)
    return folder


def test_files_become_migrations(folder: Path) -> None:
    (folder / "0002_more.sql").write_text("-- compat: additive\nCREATE INDEX i ON a (x);")
    (folder / "0001_first.sql").write_text(SCRIPT)
    first, second = read_migrations("package_of_a_test")
    assert (first.version, first.name, first.compat) == (1, "first", "breaking")
    assert [statement.split()[0] for statement in first.statements] == ["CREATE", "INSERT"]
    assert second == Migration(version=2, name="more", compat="additive", statements=("CREATE INDEX i ON a (x)",))


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("0002_gap.sql", "-- compat: additive\n", "not numbered"),
        ("0001_silent.sql", "CREATE TABLE a (x);", "no migration"),
        ("first.sql", "-- compat: additive\n", "no migration"),
    ],
)
def test_a_file_that_is_no_migration(folder: Path, file: str, text: str, told: str) -> None:
    (folder / file).write_text(text)
    with pytest.raises(ImportError, match=told):
        read_migrations("package_of_a_test")


def test_what_is_missing_is_applied_in_order() -> None:
    assert missing([FIRST, SECOND], {}, "a store") == [FIRST, SECOND]
    assert missing([FIRST, SECOND], {1: "breaking"}, "a store") == [SECOND]
    assert missing([FIRST, SECOND], {1: "breaking", 2: "additive"}, "a store") == []


def test_a_later_addition_does_not_matter() -> None:
    assert missing([FIRST], {1: "breaking", 2: "additive"}, "a store") == []


def test_a_later_break_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match=r"jobs\.db has schema 4.*knows up to 1 and schema 3.*upgrade ropewalk"):
        missing([FIRST], {1: "breaking", 2: "additive", 3: "breaking", 4: "additive"}, "jobs.db")
