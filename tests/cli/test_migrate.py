"""B3: the schema is applied, looked at, or printed for somebody who applies it by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ropewalk import App, InvalidInput, SchemaMismatch, job
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.cli.group import root
from ropewalk.fleet.exit_codes import ExitCode


@job
async def add(a: int) -> int:
    return a


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
def url(file: Path) -> str:
    return f"sqlite:///{file}"


def migrate(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["migrate", *arguments], catch_exceptions=False, standalone_mode=False)


def test_it_creates_and_then_finds_it_done(url: str, file: Path) -> None:
    assert migrate("--url", url, "--check").return_value is ExitCode.FAILED
    assert not file.exists()
    assert migrate("--url", url).output == "applied 0001_first: schema 1 is current\n"
    assert migrate("--url", url).output == "schema 1 is current\n"
    checked = migrate("--url", url, "--check", "--json")
    assert (checked.return_value, json.loads(checked.output)) == (
        ExitCode.OK,
        {"applied": 1, "newest": 1, "missing": []},
    )


async def test_by_hand(url: str, file: Path) -> None:
    """What is printed makes the same store; an app that may not migrate uses it."""
    script = await _ddl(url)
    app = App(url, jobs=[add], migrate=False)
    with pytest.raises(SchemaMismatch, match="lacks 0001_first: run `ropewalk migrate`"):
        await app.enqueue(add(1))
    assert not file.exists()
    db = sqlite.connect(file, isolation_level=None)
    db.executescript(script)
    db.close()
    async with app.running():
        assert await app.enqueue(add(1)).result(timeout=10) == 1
    assert await _ddl(url) == ""


def test_printed(url: str) -> None:
    assert "CREATE TABLE job (" in migrate("--url", url, "--sql").output


def test_misuse(url: str) -> None:
    with pytest.raises(Exception, match="give one of them"):
        migrate("--url", url, "--sql", "--check")
    with pytest.raises(InvalidInput, match="has no schema"):
        migrate("--url", "memory://")


async def _ddl(url: str) -> str:
    store = App(url).migrating
    assert store is not None
    return await store.ddl()
