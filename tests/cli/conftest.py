"""Commands are run as a user runs them: in a process of their own, on a real file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ropewalk import App
from tests.cli import shop
from tests.cli.forked_commands import Done, ForkedCommands

HERE = Path(__file__).parent
RUN_SECONDS = 30


class Ran:
    def __init__(self, done: Done) -> None:
        self.code = done.code
        self.out = done.out
        self.err = done.err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]
Start = Callable[..., subprocess.Popen[str]]


def environment(**more: str) -> dict[str, str]:
    """This one, without anything that tells the command line what to do."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("ROPEWALK_")}
    return {**ours, "COLUMNS": "80", **more}


def until(happened: Callable[[], object], what: str, *, seconds: float = 20.0) -> None:
    limit = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < limit, what
        time.sleep(0.02)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a short name: the store keeps its sockets beside the file only where their path fits."""
    with tempfile.TemporaryDirectory(prefix="rw-") as directory:
        yield Path(directory)


@pytest.fixture
def url(place: Path) -> str:
    return f"sqlite:///{place}/jobs.db"


@pytest.fixture(scope="session")
def forked_commands() -> Iterator[ForkedCommands]:
    with ForkedCommands() as commands:
        yield commands


@pytest.fixture
def ropewalk(url: str, forked_commands: ForkedCommands) -> Run:
    def run(*args: str, cwd: Path = HERE, **env: str) -> Ran:
        given = environment(**({"ROPEWALK_URL": url} | env))
        return Ran(forked_commands.run(args, cwd=cwd, env=given, timeout=RUN_SECONDS))

    return run


@pytest.fixture
def start(url: str) -> Iterator[Start]:
    """`ropewalk worker shop:app`, or another name in there. What is left of it when the test is over is killed, with
    the processes it started."""
    started: list[subprocess.Popen[str]] = []

    def worker(*options: str, name: str = "app", **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ropewalk", "worker", f"shop:{name}", *options],
            env=environment(**({"ROPEWALK_URL": url} | env)),
            cwd=HERE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield worker
    for process in started:
        for pid in [*members(process), process.pid] if process.poll() is None else []:
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def members(process: subprocess.Popen[str]) -> list[int]:
    """The processes it started and has not reaped yet."""
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def lingering(app: App, job_type: str, place: Path) -> str:
    """A job of that type, running."""
    job_id = app.sync.enqueue(job_type, {"here": str(place)}).id
    until((place / "lingering").exists, f"{job_type} starts")
    return job_id


@pytest.fixture
def app(url: str) -> Iterator[App]:
    """The same store, from here."""
    app = App(url, jobs=shop.TYPES)
    yield app
    app.sync.close()
