"""R18: a handler's own writes and the completion of its job happen together, or not at all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ropewalk import App, Context, Event, InvalidInput, LeaseLost, Result, State, Unsupported, WaitTimeout, job
from ropewalk.backends.sqlite.library import sqlite

raised: list[BaseException] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    raised.clear()


@job
async def counted(number: int) -> int:
    return number


@job(max_attempts=1)
async def writes(ctx: Context, *, fails: bool = False, lost: bool = False, slow: bool = False) -> int:
    try:
        async with ctx.transaction() as tx:
            await tx.execute("INSERT INTO mine VALUES (?)", (ctx.id,))
            if fails:
                raise ValueError("after the write")
            if lost:
                # As if another worker had taken it over. On this connection: SQLite has one writer.
                await tx.execute("UPDATE job SET owner = 'another', fence = fence + 1 WHERE id = ?", (ctx.id,))
            if slow:
                await tx.execute(FOREVER)
            return tx.complete(7)
    except BaseException as error:
        raised.append(error)
        raise


FOREVER = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@job(max_attempts=1)
def writes_in_a_thread(ctx: Context) -> int:
    with ctx.sync.transaction() as tx:
        tx.execute("INSERT INTO mine VALUES (?)", (ctx.id,))
        return tx.complete(8)


@job(max_attempts=1)
async def queues(ctx: Context, *, behind: str | None = None) -> Result[None, int]:
    async with ctx.transaction() as tx:
        await tx.execute("INSERT INTO mine VALUES (?)", (ctx.id,))
        child = counted(9) if behind is None else counted(9).using(depends_on=behind)
        return tx.complete(ctx.queue(child))


@job(max_attempts=1)
async def misuses(ctx: Context, how: str) -> str:
    transaction = ctx.transaction()
    try:
        if how == "outside":
            await transaction.execute("SELECT 1")
        async with transaction as tx:
            await tx.execute("COMMIT" if how == "commit" else "INSERT INTO nowhere VALUES (1)")
    except Exception as error:
        raised.append(error)
        raise
    return "never"


JOBS = (counted, writes, writes_in_a_thread, queues, misuses)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
async def app(file: Path) -> AsyncIterator[App]:
    app = App(f"sqlite:///{file}", jobs=JOBS)
    await app.count()
    with_table(file)
    yield app
    await app.close()


def with_table(file: Path) -> None:
    db = sqlite.connect(file)
    db.execute("CREATE TABLE mine (job TEXT)")
    db.commit()
    db.close()


def mine(file: Path) -> list[str]:
    db = sqlite.connect(file)
    found = [job_id for (job_id,) in db.execute("SELECT job FROM mine")]
    db.close()
    return found


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_both_happen(app: App, file: Path, kind: str) -> None:
    async with app.running() as worker:
        handle = await app.enqueue(writes() if kind == "async" else writes_in_a_thread())
        assert await handle.result(timeout=10) == (7 if kind == "async" else 8)
        assert mine(file) == [handle.id]
        await worker.idle()
        assert worker.settled == 1
    assert [entry.kind for entry in await app.history(handle.id)] == ["queued", "started", "complete"]


async def test_a_failure_undoes_the_writes(app: App, file: Path) -> None:
    async with app.running():
        handle = await app.enqueue(writes(fails=True))
        assert (await app.wait(handle.id, timeout=10)).state is State.DEAD_LETTER
    assert mine(file) == []


@pytest.mark.usefixtures("app")
async def test_a_lost_lease_undoes_the_writes(file: Path) -> None:
    """safe-5: the settlement is the last statement, and stale."""
    lost = asyncio.Event()

    def hear(event: Event) -> None:
        if event.kind == "lease_lost":
            lost.set()

    app = App(f"sqlite:///{file}", jobs=JOBS, on_event=hear)
    async with app, app.worker(grace=0) as worker:
        await app.enqueue(writes(lost=True))
        await asyncio.wait_for(lost.wait(), 10)
        assert isinstance(raised[0], LeaseLost)
        assert worker.settled == 0
    assert mine(file) == []


async def test_it_may_not_take_long(app: App, file: Path) -> None:
    """Nobody else can write meanwhile: it is interrupted after a sixth of the lease."""
    async with app, app.worker(lease=3.0):
        began = time.monotonic()
        handle = await app.enqueue(writes(slow=True))
        assert (await app.wait(handle.id, timeout=10)).state is State.DEAD_LETTER
        assert isinstance(raised[0], WaitTimeout)
        assert time.monotonic() - began < 3.0
        assert await app.enqueue(counted(1)).result(timeout=10) == 1
    assert mine(file) == []


async def test_children_come_with_it(app: App, file: Path) -> None:
    async with app.running():
        handle = await app.enqueue(queues())
        assert await handle.group(timeout=10) == 9
        assert mine(file) == [handle.id]
        refused = await app.enqueue(queues(behind="no-such-job"))
        info = await app.wait(refused.id, timeout=10)
        assert info.state is State.FAILED and info.error is not None and "no-such-job" in info.error.message
        assert mine(file) == [handle.id]


@pytest.mark.parametrize(("how", "kind"), [("outside", InvalidInput), ("commit", InvalidInput), ("table", Exception)])
async def test_misuse_is_told(app: App, how: str, kind: type[Exception]) -> None:
    async with app.running():
        handle = await app.enqueue(misuses(how))
        await app.wait(handle.id, timeout=10)
        assert isinstance(raised[0], kind)
        assert await app.enqueue(counted(1)).result(timeout=10) == 1


async def test_where_there_is_none() -> None:
    app = App("memory://", jobs=[writes])
    async with app.running():
        handle = await app.enqueue(writes())
        await app.wait(handle.id, timeout=10)
        assert isinstance(raised[0], Unsupported)


KILLED = """
import asyncio, sys
from ropewalk import App, Context, Filter, State, job

@job(max_attempts=50, max_crashes=50)
async def writes(ctx: Context, number: int) -> None:
    async with ctx.transaction() as tx:
        await tx.execute("INSERT INTO mine VALUES (?)", (ctx.id,))
        await asyncio.sleep(0.002)
        tx.complete(None)

app = App(f"sqlite:///{sys.argv[1]}", jobs=[writes])

async def main():
    if sys.argv[2] == "fill":
        await app.enqueue_many([writes(number) for number in range(200)])
        await app.close()
    else:
        async with app.worker(lease=1.0, concurrency=4):
            while await app.count(Filter(states=(State.COMPLETED,))) < 200:
                await asyncio.sleep(0.05)

asyncio.run(main())
"""


async def test_through_kills_the_writes_are_exactly_once(tmp_path: Path, file: Path) -> None:
    """Workers are killed in the middle of it; what is written belongs to completed jobs, once each."""
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    command = [sys.executable, str(script), str(file)]
    subprocess.run([*command, "fill"], check=True)
    with_table(file)
    for kill in range(1, 6):
        with subprocess.Popen([*command, "work"]) as worker:
            async with asyncio.timeout(30):
                while len(mine(file)) < 20 * kill:
                    await asyncio.sleep(0.002)
            os.kill(worker.pid, signal.SIGKILL)
    before = len(mine(file))
    subprocess.run([*command, "work"], check=True, timeout=60)
    app = App(f"sqlite:///{file}")
    completed = [info.id for info in (await app.search(limit=1000)).jobs if info.state is State.COMPLETED]
    await app.close()
    assert 100 <= before < 200, "the kills came too late to show anything"
    assert sorted(mine(file)) == sorted(completed)
    assert len(completed) == 200
