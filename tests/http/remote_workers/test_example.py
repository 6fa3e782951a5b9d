"""The example of a worker in plain Python, as a process of its own against a real server."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from ropewalk import App, Backoff, job
from ropewalk.errors import JobFailed
from tests.apps import MakeApp
from tests.http.server import People

EXAMPLE = Path(__file__).parents[3] / "examples" / "remote_worker" / "worker.py"


@job
async def add(a: int, b: int) -> int:
    return a + b


@job(backoff=Backoff.constant(0), max_attempts=2)
async def divide(a: int, b: int) -> float:
    return a / b


@job
async def copy_rows(rows: int) -> int | None:
    return rows


@pytest.fixture
def app(make_app: MakeApp) -> App:
    return make_app(add, divide, copy_rows)


async def test_the_example_runs_jobs(app: App, server_url: str, people: People) -> None:
    environment = {**os.environ, "ROPEWALK_URL": server_url, "ROPEWALK_TOKEN": "fleet"}
    process = await asyncio.create_subprocess_exec(sys.executable, str(EXAMPLE), env=environment)
    try:
        assert await (await app.enqueue(add(1, 2))).result(30) == 3
        failing = await app.enqueue(divide(1, 0))
        with pytest.raises(JobFailed, match="division by zero"):
            await failing.result(30)
        assert (await app.get(failing.id)).attempt == 2
        copying = await app.enqueue(copy_rows(20))
        assert await copying.result(30) == 20
        copied = await app.get(copying.id)
        assert copied.progress is not None and copied.progress.percent > 0
        cancelled = await app.enqueue(copy_rows(1000))
        while (await app.get(cancelled.id)).progress is None:
            await asyncio.sleep(0.05)
        await app.cancel(cancelled.id)
        while (await app.get(cancelled.id)).state != "cancelled":
            await asyncio.sleep(0.05)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 20) == 0
        assert await app.workers() == []
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
