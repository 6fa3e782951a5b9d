"""A store on a real file under the real clock, and programs that use the same file from processes of their own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ropewalk.backends.sqlite import SqliteStore
from ropewalk.domain.jobs.record import NewJob
from ropewalk.ports.store.submission import Accepted, Submission
from ropewalk.runtime.system import SystemRuntime

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture
def path() -> Iterator[Path]:
    """In a directory of its own, with a name short enough for sockets beside it."""
    with tempfile.TemporaryDirectory(prefix="rw-") as directory:
        yield Path(directory).resolve() / "jobs.db"


@pytest_asyncio.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, SystemRuntime())
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts programs/<name>.py; whatever still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(name: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, str(PROGRAMS / f"{name}.py"), *map(str, arguments)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def plain(job_id: str, **fields: Any) -> NewJob:
    return NewJob(**({"id": job_id, "type": "t", "input": b"{}"} | fields))


async def submit(store: SqliteStore, *jobs: NewJob) -> list[Accepted]:
    [answer] = await store.submit([Submission(jobs=jobs)])
    assert isinstance(answer, list), answer
    return answer


def output_of(process: subprocess.Popen[str], timeout_seconds: float = 60) -> str:
    """What it printed; fails with what it complained about."""
    printed, complaint = process.communicate(timeout=timeout_seconds)
    assert process.returncode == 0, complaint
    return printed
