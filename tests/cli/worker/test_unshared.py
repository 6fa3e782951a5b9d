"""`ropewalk worker` on a store that nobody else can reach says so, as its log says everything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

MODULE = """
import os
import signal
import warnings
from contextlib import asynccontextmanager

from ropewalk import App, UnsharedStore, job

{first}

@job
async def add(a: int, b: int) -> int:
    return a + b


@asynccontextmanager
async def ends(app):
    os.kill(os.getpid(), signal.SIGTERM)
    yield


app = App({url}jobs=[add], lifespan=ends)
mail = app.worker()
"""
TOLD = (
    "memory:// lives in this process alone: no other process can queue jobs for this worker, or see them, and they end "
    "with it. Give the app a store that others can open, such as sqlite:///jobs.db"
)


@pytest.fixture(params=["", '"memory://", '], ids=["no url", "memory"])
def module(request: pytest.FixtureRequest, place: Path) -> Path:
    path = place / "lonely.py"
    path.write_text(MODULE.format(url=request.param, first=""), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["app", "mail"])
def test_it_is_said_once(module: Path, name: str, ropewalk: Run) -> None:
    answer = ropewalk("worker", f"lonely:{name}", cwd=module.parent, ROPEWALK_URL="")
    assert answer.code == 0, answer.err
    [line] = [line for line in answer.err.splitlines() if "memory" in line or "Warning" in line or "Unshared" in line]
    assert line.endswith(f" WARNING {TOLD}")


def test_it_is_said_as_json(module: Path, ropewalk: Run) -> None:
    answer = ropewalk("worker", "lonely:app", "--log-format", "json", cwd=module.parent, ROPEWALK_URL="")
    lines = [json.loads(line) for line in answer.err.splitlines()]
    assert [line["level"] for line in lines if line["message"] == TOLD] == ["WARNING"]


@pytest.mark.parametrize(("action", "code", "count"), [("ignore", 0, 0), ("error", 2, 1)])
def test_filters_of_warnings_hold(action: str, code: int, count: int, place: Path, ropewalk: Run) -> None:
    first = f"warnings.simplefilter({action!r}, UnsharedStore)"
    (place / "lonely.py").write_text(MODULE.format(url="", first=first), encoding="utf-8")
    answer = ropewalk("worker", "lonely:app", cwd=place, ROPEWALK_URL="")
    assert (answer.code, answer.err.count(TOLD), "Traceback" in answer.err) == (code, count, False)
