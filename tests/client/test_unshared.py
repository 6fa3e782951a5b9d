"""An app without a URL keeps its jobs in its own process: a program that is no test hears of it, once.

Each program here runs in a process of its own, whose environment says nothing of the test that started it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

from ropewalk import App, job

PRELUDE = """
import asyncio
import ropewalk
from ropewalk import App, UnsharedStore, job

@job
async def add(a: int, b: int) -> int:
    return a + b

"""
FIRST_USE = """
async def main():
    app = {app}
    async with app.running():
        assert await app.enqueue(add(1, 2)).result() == 3
        assert await app.enqueue(add(1, 2)).result() == 3
    async with app:
        pass

asyncio.run(main())
"""
BLOCKING = """
app = {app}
app.sync.enqueue(add(1, 2))
app.sync.enqueue(add(1, 2))
"""
NO_URL = "App(jobs=[add])"


@job
async def add(a: int, b: int) -> int:
    return a + b


def said(place: Path, program: str, **environment: str) -> list[str]:
    """What a program writes to stderr, without the lines of it that Python quotes."""
    (place / "program.py").write_text(PRELUDE + textwrap.dedent(program), encoding="utf-8")
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "ROPEWALK", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=place,
        env={**ours, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if not line.startswith("  ")]


@pytest.mark.parametrize(
    ("program", "app"),
    [(FIRST_USE, NO_URL), (BLOCKING, NO_URL), (BLOCKING, "ropewalk.default")],
    ids=["loop", "blocking", "default"],
)
def test_a_program_hears_of_it_once(tmp_path: Path, program: str, app: str) -> None:
    [line] = said(tmp_path, program.format(app=app))
    assert line.startswith(f"{tmp_path}/program.py:")
    assert "UnsharedStore: this app was given no URL, so its jobs are in the memory of this process" in line
    assert "App(url), or set $ROPEWALK_URL" in line


@pytest.mark.parametrize(
    ("app", "environment"),
    [
        ('App("memory://", jobs=[add])', {}),
        (NO_URL, {"ROPEWALK_URL": "memory://"}),
        (NO_URL, {"ROPEWALK_URL": "sqlite:///jobs.db"}),
    ],
)
def test_nothing_is_said_where_the_store_was_chosen(tmp_path: Path, app: str, environment: dict[str, str]) -> None:
    assert said(tmp_path, FIRST_USE.format(app=app), **environment) == []


def test_nothing_is_said_before_it_is_used(tmp_path: Path) -> None:
    assert said(tmp_path, "app = App(jobs=[add])\n") == []


def test_it_can_be_filtered(tmp_path: Path) -> None:
    quiet = "import warnings\nwarnings.simplefilter('ignore', UnsharedStore)\n"
    assert said(tmp_path, quiet + FIRST_USE.format(app=NO_URL)) == []
    told = "ignore:this app was given no URL:RuntimeWarning"
    assert said(tmp_path, FIRST_USE.format(app=NO_URL), PYTHONWARNINGS=told) == []
    strict = "import warnings\nwarnings.simplefilter('error', UnsharedStore)\n"
    caught = "\ntry:\n    asyncio.run(main())\nexcept UnsharedStore:\n    pass\nelse:\n    raise SystemExit(1)\n"
    assert said(tmp_path, strict + FIRST_USE.format(app=NO_URL).replace("\nasyncio.run(main())\n", caught)) == []


# ── tests ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_test_hears_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with App(jobs=add).running() as worker:
            await worker.idle()


def test_neither_does_a_program_that_a_test_starts(tmp_path: Path) -> None:
    started_by_a_test = {"PYTEST_CURRENT_TEST": os.environ["PYTEST_CURRENT_TEST"]}
    assert said(tmp_path, FIRST_USE.format(app=NO_URL), **started_by_a_test) == []


def test_unittest_is_a_test_and_its_import_is_none(tmp_path: Path) -> None:
    program = """
    import unittest

    class Adding(unittest.IsolatedAsyncioTestCase):
        async def test_on_a_loop(self):
            async with App(jobs=[add]).running() as worker:
                await worker.idle()

        def test_blocking(self):
            App(jobs=[add]).sync.enqueue(add(1, 2))
    """
    ends = "\nunittest.main(argv=['program.py', '-q'])\n"
    assert not [line for line in said(tmp_path, textwrap.dedent(program) + ends) if "UnsharedStore" in line]
    imported = textwrap.dedent(program) + BLOCKING.format(app=NO_URL)
    assert len([line for line in said(tmp_path, imported) if "UnsharedStore" in line]) == 1


def test_a_rehearsal_and_a_fake_clock_are_tests(tmp_path: Path) -> None:
    program = """
    from ropewalk.testing import FakeRuntime, Rehearsal

    async def main():
        assert await Rehearsal(App(jobs=[add])).run(add(1, 2)) == 3
        async with App(jobs=[add], runtime=FakeRuntime()) as app:
            await app.enqueue(add(1, 2))

    asyncio.run(main())
    """
    assert said(tmp_path, program) == []
