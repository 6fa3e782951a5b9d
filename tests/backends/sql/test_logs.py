"""live-8: of a job that is gone no line is left in the table, which no verb of the port could show."""

from __future__ import annotations

from pathlib import Path

from ropewalk.backends.postgres import PostgresStore
from ropewalk.backends.sql.store import SqlStore
from ropewalk.backends.sqlite import SqliteStore
from ropewalk.domain.logs import LogLine
from ropewalk.domain.retention import Retention
from ropewalk.ports.store.submission import Submission
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract.builders import claim_request, new_job, settlement


async def test_on_sqlite(tmp_path: Path) -> None:
    runtime = FakeRuntime()
    await check(SqliteStore(tmp_path / "jobs.db", runtime), runtime)


async def test_on_postgres(postgres_database: str) -> None:
    runtime = FakeRuntime()
    url = f"{postgres_database}?schema=jobs"
    await check(PostgresStore(url, runtime, allow_weaker_durability=True), runtime)


async def check(store: SqlStore, runtime: FakeRuntime) -> None:
    await store.open()
    try:
        await lines_go_with_their_job(store, runtime)
    finally:
        await store.close()


async def lines_in(store: SqlStore) -> int:
    count: int = await store._read(lambda tx: tx.value("SELECT count(*) FROM log"))
    return count


async def lines_go_with_their_job(store: SqlStore, runtime: FakeRuntime) -> None:
    line = LogLine(position=1, attempt=1, at=0, level=20, message="here")
    await store.submit([Submission(jobs=[new_job(id="deleted"), new_job(id="pruned"), new_job(id="kept")])])
    jobs = (await store.claim(claim_request(limit=3))).jobs
    await store.settle("worker", [settlement(job, lines=(line,)) for job in jobs[:2]])
    assert await lines_in(store) == 2
    await store.delete("default", ["deleted"])
    assert await lines_in(store) == 1
    await runtime.advance(60)
    await store.prune(Retention.of(completed=0.000_001), 10)  # PostgreSQL has a clock of its own
    assert await lines_in(store) == 0
    await store.settle("worker", [settlement(jobs[2], lines=(line,))])
    assert [len(await store.log("default", job.id)) for job in jobs] == [0, 0, 1]
    assert await lines_in(store) == 1
