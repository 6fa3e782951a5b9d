"""B1: a backend outside this package, built, installed and found as its users would, keeps the contract."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

EXAMPLE = ROOT / "examples/journal_backend"

SENDER = """\
import asyncio, os, signal
from jobs import add, app

async def main():
    async with app:
        handles = await app.enqueue_many([add(1, 2), add(3, 4)])
        print(*(handle.id for handle in handles), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
WORKER = """\
import asyncio, sys
from jobs import add, app

async def main():
    async with app.running():
        print(app.url, *[await app.handle(job_id, add).result(timeout=20) for job_id in sys.argv[1:]])

asyncio.run(main())
"""
JOBS = """\
from ropewalk import App, job

@job
async def add(a: int, b: int) -> int:
    return a + b

app = App("journal:///jobs.journal", jobs=[add])
"""


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as a wheel, installed beside ropewalk but not into its environment."""
    source, target = tmp_path_factory.mktemp("source") / "journal", tmp_path_factory.mktemp("site-packages")
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    flags = ["--no-deps", "--no-build-isolation", "--offline", "--no-cache", "--quiet"]
    install = [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable, "--target", str(target)]
    done = subprocess.run([*install, *flags, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def python(*arguments: str, site: Path, directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def test_its_url_reaches_it_and_its_jobs_survive_a_kill(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(JOBS)
    (tmp_path / "send.py").write_text(SENDER)
    (tmp_path / "work.py").write_text(WORKER)
    sent = python("send.py", site=installed, directory=tmp_path)
    assert sent.returncode == -signal.SIGKILL, sent.stderr
    worked = python("work.py", *sent.stdout.split(), site=installed, directory=tmp_path)
    assert worked.stdout.split() == ["journal:///jobs.journal", "3", "7"], worked.stderr


def test_the_command_line_reaches_it(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(JOBS)
    (tmp_path / "send.py").write_text(SENDER)
    python("send.py", site=installed, directory=tmp_path)
    url = ("--url", "journal:///jobs.journal")
    listed = python("-m", "ropewalk", "jobs", "list", *url, site=installed, directory=tmp_path)
    assert listed.stdout.count("scheduled") == 2, listed.stdout + listed.stderr
    refused = python("-m", "ropewalk", "stats", *url, site=installed, directory=tmp_path)
    assert refused.returncode != 0
    assert "the journal store has no statistics" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_doctor_shows_what_it_says_of_itself(installed: Path, tmp_path: Path) -> None:
    """H5: the doctor knows nothing of journals, so the findings about the file come from the package of the store."""
    (tmp_path / "jobs.py").write_text(JOBS)
    (tmp_path / "send.py").write_text(SENDER)
    python("send.py", site=installed, directory=tmp_path)
    url = ("--url", "journal:///jobs.journal")
    examined = python("-m", "ropewalk", "doctor", *url, site=installed, directory=tmp_path)
    found = [re.sub(r"\d\S* \w+", "N", line) for line in examined.stdout.splitlines()]
    assert found[:2] == [
        "ok    durability    a change is on disk before it is answered: an acknowledged job survives power loss",
        "ok    journal       the file has N, and the disk N left",
    ], examined.stdout + examined.stderr
    assert "ok    wake-ups      a journal is open in one process only: nobody else has to be woken" in found
    assert "warn  workers       no worker is alive" in found
    assert examined.returncode == 1


@pytest.mark.timeout(600)  # all of the contract that is for such a store, in one process
def test_it_keeps_the_contract(installed: Path, tmp_path: Path) -> None:
    for name in ("test_journal.py", "pyproject.toml"):
        shutil.copy(EXAMPLE / name, tmp_path)
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_journal.py", site=installed, directory=tmp_path)
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout
    assert int(passed[1]) > 500
    assert "skipped" not in done.stdout
