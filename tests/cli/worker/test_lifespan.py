"""`ropewalk worker` whose lifespan exits: the command fails and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run

MODULE = """
import sys
from contextlib import asynccontextmanager

from ropewalk import App, job

@job
async def nothing() -> None: ...


@asynccontextmanager
async def lifespan(app):
    {first}
    yield


app = App(jobs=[nothing], lifespan=lifespan)
"""


@pytest.mark.parametrize("code", [0, "set DATABASE_URL"])
def test_a_lifespan_that_exits_is_a_failed_start(place: Path, ropewalk: Run, code: int | str) -> None:
    (place / "exiting.py").write_text(MODULE.format(first=f"sys.exit({code!r})"), encoding="utf-8")
    answer = ropewalk("worker", "exiting:app", cwd=place)
    assert answer.code == 1, answer.err
    assert f"the lifespan of the app raised SystemExit({code!r}): only an Exception tells what is wrong" in answer.err
