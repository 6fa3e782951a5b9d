"""Every command on a file that is damaged, or no database: one line that says so, an exit code, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from ropewalk import App, job
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.cli.errors import exit_code_of
from ropewalk.cli.group import root
from ropewalk.fleet.exit_codes import ExitCode

PAGE = 4096
COMMANDS = (
    "doctor",
    "doctor --deep",
    "jobs list",
    "jobs show x",
    "migrate",
    "migrate --check",
    "queues list",
    "workers list",
    "stats",
)
LOOK_AT_EVERYTHING = ("doctor --deep",)


@job
async def add(a: int) -> int:
    return a


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("sound") / "jobs.db"
    app = App(f"sqlite:///{file}", jobs=[add])
    app.sync.enqueue_many(add(number) for number in range(100))
    app.sync.close()
    return file.read_bytes()


def text(_: bytes) -> bytes:
    return b"to do: buy milk\n" * 1000


def first(length: int) -> Callable[[bytes], bytes]:
    return lambda whole: whole[:length]


def noise_from(page: int) -> Callable[[bytes], bytes]:
    """Every page from this one on is random bytes."""
    return lambda whole: whole[: page * PAGE] + Random(page).randbytes(len(whole) - page * PAGE)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "a text file": text,
    "cut in the header": first(50),
    "cut after the first page": first(PAGE),
    "cut in the middle": lambda whole: whole[: len(whole) // 2],
    "noise behind the header": noise_from(1),
    "nothing but noise": noise_from(0),
}


def run(command: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["ropewalk", *command.split(), "--url", f"sqlite:///{file}"])
    return exit_code_of(root)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file(
    sound: bytes, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in COMMANDS:
        file = tmp_path / "jobs.db"
        file.write_bytes(DAMAGE[damage](sound))
        assert run(command, file, monkeypatch) == ExitCode.STORE, command
        told = "".join(capsys.readouterr())
        assert "Traceback" not in told
        assert str(file) in told


@pytest.mark.parametrize("number", [3, 9, 15, 21])
def test_one_damaged_page(
    sound: bytes, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who does not meet it goes on; whoever does says so; --deep meets it."""
    for command in COMMANDS:
        file = tmp_path / "jobs.db"
        noise = Random(number).randbytes(PAGE)
        file.write_bytes(sound[: number * PAGE] + noise + sound[(number + 1) * PAGE :])
        code = run(command, file, monkeypatch)
        assert code in (ExitCode.STORE, ExitCode.FAILED, ExitCode.OK)
        assert code == ExitCode.STORE or command not in LOOK_AT_EVERYTHING
    assert "Traceback" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE job",
        "DROP TABLE lane",
        "DROP TABLE migration",
        "ALTER TABLE worker DROP COLUMN host",
        "DROP TABLE migration; CREATE TABLE migration (x)",
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE nonsense' WHERE name = 'job'",
    ],
)
def test_a_damaged_schema(
    sound: bytes, statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes: set[int] = set()
    for command in COMMANDS:
        file = tmp_path / "jobs.db"
        file.write_bytes(sound)
        db = sqlite.connect(file, isolation_level=None)
        for part in statement.split(";"):
            db.execute(part)
        db.close()
        codes.add(run(command, file, monkeypatch))
    assert ExitCode.STORE in codes
    assert "Traceback" not in "".join(capsys.readouterr())


def test_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        assert run(command, tmp_path, monkeypatch) == ExitCode.USAGE
        assert f"error: {tmp_path} is a directory: give the path of a file in it" in capsys.readouterr().err


def test_a_directory_that_nobody_may_write_to(
    sound: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mount that is read-only looks like this. Whoever runs the tests may be root: the question is answered here."""
    file = tmp_path / "jobs.db"
    file.write_bytes(sound)
    monkeypatch.setattr(os, "access", lambda *_: False)
    for command in COMMANDS:
        assert run(command, file, monkeypatch) == ExitCode.STORE
        assert f"{file} is not writable for this user" in "".join(capsys.readouterr())
