"""Commands are run as a user runs them: in a process of their own, on a real file."""

from __future__ import annotations

import json
import os
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

HERE = Path(__file__).parent
RUN_SECONDS = 30


class Ran:
    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


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


@pytest.fixture
def ropewalk(url: str) -> Run:
    def run(*args: str, cwd: Path = HERE, **env: str) -> Ran:
        return Ran(
            subprocess.run(
                # -P: like the installed script, which does not put the current directory on the path.
                [sys.executable, "-P", "-m", "ropewalk", *args],
                env=environment(**({"ROPEWALK_URL": url} | env)),
                cwd=cwd,
                capture_output=True,
                text=True,
                timeout=RUN_SECONDS,
                check=False,
            )
        )

    return run


@pytest.fixture
def app(url: str) -> Iterator[App]:
    """The same store, from here."""
    app = App(url, jobs=shop.TYPES)
    yield app
    app.sync.portal.call(app.close())
    app.sync.portal.close()
