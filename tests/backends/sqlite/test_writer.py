"""One thread writes: it shares commits, keeps failures apart, and outlives full disks, loops and forks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.sqlite import SqliteStore, checkpoint
from ropewalk.backends.sqlite.library import has_wal_reset_bug, sqlite
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.retention import Retention
from ropewalk.errors import InvalidInput, StoreUnavailable
from ropewalk.ports.store.submission import Submission
from ropewalk.runtime.system import SystemRuntime, ThreadTask
from tests.backends.sqlite.conftest import plain, submit

LOG_HEADER_BYTES = 32
"""another one whenever it begins"""


def trace(store: SqliteStore) -> list[str]:
    """Every statement the writer runs from now on."""
    seen: list[str] = []
    db = store._writer._db
    assert db is not None
    db.set_trace_callback(seen.append)
    return seen


async def test_requests_that_come_together_share_a_commit(store: SqliteStore) -> None:
    seen = trace(store)
    await asyncio.gather(*(submit(store, plain(f"job-{number}")) for number in range(100)))
    commits = seen.count("COMMIT")
    assert seen.count("BEGIN IMMEDIATE") == commits
    assert commits <= 5, f"{commits} commits for 100 concurrent submissions"
    assert len((await store.get("default", [f"job-{number}" for number in range(100)])).jobs) == 100


def broken(tx: Tx) -> None:
    tx.run("INSERT INTO lane (tenant, queue, type, limit_key) VALUES ('x', 'x', 'x', '')")
    raise LookupError("after a change")


async def left_of_broken(store: SqliteStore) -> int:
    return int(await store._writer.ask(lambda tx: tx.value("SELECT count(*) FROM lane WHERE tenant = 'x'")))


async def test_a_failing_request_loses_only_itself(store: SqliteStore) -> None:
    calls = (submit(store, plain("before")), store._writer.ask(broken), submit(store, plain("after")))
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(results[1], LookupError)
    assert (await store.get("default", ["before", "after"])).jobs.keys() == {"before", "after"}
    assert await left_of_broken(store) == 0


async def test_a_request_that_raises_what_no_future_takes_ends_no_thread(store: SqliteStore) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await store._writer.ask(lambda _: next(iter(())))
    await submit(store, plain("after"))
    assert (await store.get("default", ["after"])).jobs.keys() == {"after"}


async def test_a_request_that_fails_alone_leaves_nothing(store: SqliteStore) -> None:
    with pytest.raises(LookupError):
        await store._writer.ask(broken)
    assert await left_of_broken(store) == 0


@pytest.mark.parametrize("company", [0, 1])
async def test_a_lane_that_was_rolled_back_is_written_again(store: SqliteStore, company: int) -> None:
    """Its number is remembered only as long as its row is there."""

    def broken(tx: Tx) -> None:
        tx.lanes.id_of(tx, LaneName("default", "default", "t", ""))
        raise LookupError("undone")

    others = [store._writer.ask(lambda tx: tx.now) for _ in range(company)]
    results = await asyncio.gather(store._writer.ask(broken), *others, return_exceptions=True)
    assert isinstance(results[0], LookupError)
    await submit(store, plain("a"))
    assert await store._writer.ask(lambda tx: tx.value("SELECT count(*) FROM job JOIN lane ON job.lane = lane.id")) == 1


async def test_who_went_away_before_it_began_changes_nothing(store: SqliteStore) -> None:
    held, go_on = threading.Event(), threading.Event()

    def hold(_: Tx) -> None:
        held.set()
        go_on.wait(30)

    holding = asyncio.ensure_future(store._writer.ask(hold))
    await asyncio.to_thread(held.wait, 30)
    leaving = asyncio.ensure_future(submit(store, plain("gone")))
    staying = asyncio.ensure_future(submit(store, plain("there")))
    await asyncio.sleep(0)
    leaving.cancel()
    go_on.set()
    await asyncio.gather(holding, staying)
    assert (await store.get("default", ["gone", "there"])).jobs.keys() == {"there"}


async def test_a_full_disk_changes_nothing_and_passes(store: SqliteStore) -> None:
    """Failure 15: what was acknowledged stays, and it goes on when there is room again."""
    await submit(store, plain("before"))
    await store._writer.ask(lambda tx: tx.value("PRAGMA max_page_count = 1"))  # no room beyond what it has
    big = [plain(f"big-{number}", input=b"x" * 5000) for number in range(100)]
    with pytest.raises(StoreUnavailable, match=r"is full .*make room") as caught:
        await submit(store, *big)
    assert type(caught.value) is StoreUnavailable
    assert (await store.get("default", ["before", "big-0"])).jobs.keys() == {"before"}
    await store._writer.ask(lambda tx: tx.value("PRAGMA max_page_count = 1000000"))
    await submit(store, *big)
    assert len((await store.get("default", [job.id for job in big])).jobs) == 100


async def test_a_full_disk_fails_everybody_who_shared_the_transaction(store: SqliteStore) -> None:
    """None of them was acknowledged, and none is half there."""
    await store._writer.ask(lambda tx: tx.value("PRAGMA max_page_count = 1"))
    calls = [submit(store, plain(f"big-{number}", input=b"x" * 50_000)) for number in range(20)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    await store._writer.ask(lambda tx: tx.value("PRAGMA max_page_count = 1000000"))
    stored = (await store.get("default", [f"big-{number}" for number in range(20)])).jobs
    for number, result in enumerate(results):
        assert (f"big-{number}" in stored) == isinstance(result, list), result
    assert any(isinstance(result, StoreUnavailable) for result in results)


@pytest.mark.parametrize("fields", [{"correlation_id": "\ud800"}, {"priority": 1 << 70}])
async def test_a_value_sqlite_cannot_hold(store: SqliteStore, fields: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="cannot be stored"):
        await submit(store, plain("a", **fields))


def test_one_store_outlives_its_event_loops(path: Path) -> None:
    store = SqliteStore(path, SystemRuntime())
    for number in range(3):
        asyncio.run(submit(store, plain(f"job-{number}")))
    found = asyncio.run(store.get("default", [f"job-{number}" for number in range(3)]))
    assert len(found.jobs) == 3
    asyncio.run(store.close())


class RememberingRuntime(SystemRuntime):
    """The system's runtime, which remembers the threads it started."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[tuple[str, threading.Thread]] = []

    def thread(self, main: Callable[[], Coroutine[Any, Any, object]], *, name: str) -> ThreadTask:
        task = ThreadTask(main, name)
        self.started.append((name, task._thread))
        return task


async def test_closing_finishes_what_was_accepted_and_can_be_undone(path: Path) -> None:
    """What other stores of this process do does not matter: threads are those that this store's runtime started."""
    runtime = RememberingRuntime()
    store = SqliteStore(path, runtime)
    await store.close()
    accepted = [asyncio.ensure_future(submit(store, plain(f"job-{number}"))) for number in range(10)]
    await asyncio.sleep(0)
    await asyncio.gather(store.close(), store.close())
    await asyncio.gather(*accepted)
    assert not path.with_name("jobs.db-wal").exists(), "the last to close empties the log"
    await store.open()
    assert len((await store.get("default", [f"job-{number}" for number in range(10)])).jobs) == 10
    await store.close()
    assert {"ropewalk-sqlite-writer", "ropewalk-sqlite-reader"} <= {name for name, _ in runtime.started}
    assert [name for name, thread in runtime.started if thread.is_alive()] == []


async def test_the_log_stays_small(store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "WAL_BYTES_MAX", 200_000)
    store._writer._checkpointer = checkpoint.Checkpointer(path)
    log = path.with_name("jobs.db-wal")
    sizes: list[int] = []
    for number in range(60):
        await submit(store, plain(f"job-{number}", input=b"x" * 20_000))
        await store.workers()  # readers come and go
        sizes.append(log.stat().st_size)
    assert max(sizes) < 2 * checkpoint.WAL_BYTES_MAX


@pytest.mark.parametrize("kept", [False] if has_wal_reset_bug() else [False, True])
async def test_the_log_begins_again(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """As large as it was, where the library can say how much of it is in use; else it is emptied."""
    monkeypatch.setattr(checkpoint, "WAL_BYTES_MAX", 200_000)
    monkeypatch.setattr(checkpoint, "has_wal_reset_bug", lambda: not kept)
    store._writer._checkpointer = checkpoint.Checkpointer(path)
    log = path.with_name("jobs.db-wal")
    sizes: list[int] = []
    begun: set[bytes] = set()
    for number in range(100):
        await submit(store, plain(f"job-{number}", input=b"x" * 20_000))
        sizes.append(log.stat().st_size)
        begun.add(log.read_bytes()[:LOG_HEADER_BYTES])
    assert 5 <= len(begun - {b""}) <= 30
    assert max(sizes) < 2 * checkpoint.WAL_BYTES_MAX
    assert (min(sizes[20:]) >= 200_000) == kept


async def test_a_reader_that_stays_lets_the_log_grow_until_it_goes(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Failure 59: said aloud, at longer and longer intervals, and over when the reader is."""
    monkeypatch.setattr(checkpoint, "WAL_BYTES_MAX", 100_000)
    monkeypatch.setattr(checkpoint, "WAL_BYTES_ALARMING", 100_000)
    monkeypatch.setattr(checkpoint, "WAIT_FOR_READERS_MS", 1)
    store._writer._checkpointer = checkpoint.Checkpointer(path)
    stuck = sqlite.connect(path, isolation_level=None)
    stuck.execute("BEGIN")
    stuck.execute("SELECT count(*) FROM job").fetchall()
    for number in range(50):
        await submit(store, plain(f"job-{number}", input=b"x" * 20_000))
    assert 1 <= sum("keeps an old snapshot open" in record.message for record in caplog.records) <= 5
    stuck.execute("ROLLBACK")
    stuck.close()
    for number in range(50, 150):
        await submit(store, plain(f"job-{number}", input=b"x" * 20_000))
    assert path.with_name("jobs.db-wal").stat().st_size < 300_000


async def test_space_is_given_back_after_pruning(store: SqliteStore, path: Path) -> None:
    """live-8."""
    await submit(store, *(plain(f"job-{number}", input=b"x" * 9000) for number in range(1000)))
    await store.cancel("default", [f"job-{number}" for number in range(1000)], reason=None, force=False)

    async def pages() -> int:
        return int(await store._writer.ask(lambda tx: tx.value("PRAGMA page_count")))

    before = await pages()
    while (await store.prune(Retention(cancelled_us=0), 100)).jobs:
        pass
    for _ in range(10):
        await store.prune(Retention(), 100)
    assert await pages() < before / 2


async def test_many_submissions_in_one_call_are_independent(store: SqliteStore) -> None:
    await submit(store, plain("there"))
    answers = await store.submit([Submission(jobs=[plain(each)]) for each in ("a", "there", "b")])
    assert [answer[0].duplicate for answer in answers if isinstance(answer, list)] == [False, True, False]


async def test_who_asks_while_the_thread_is_stopped_does_not_keep_it_from_stopping(store: SqliteStore) -> None:
    """The request comes when the last one was taken from the queue already: it is answered, and the thread ends."""
    loop, queued, asked = asyncio.get_running_loop(), threading.Event(), threading.Event()
    late: list[asyncio.Task[object]] = []

    def ask_late() -> None:
        late.append(asyncio.create_task(store._writer.ask(lambda tx: tx.value("SELECT 1"))))
        loop.call_soon(asked.set)

    def work(_: Tx) -> None:
        loop.call_soon_threadsafe(ask_late)
        assert asked.wait(10)

    tasks: list[asyncio.Task[Any]] = [asyncio.create_task(store._writer.ask(lambda _: queued.wait(10)))]
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(store._writer.ask(work)), asyncio.create_task(store._writer.stop())]
    await asyncio.sleep(0)
    queued.set()
    async with asyncio.timeout(10):
        await asyncio.gather(*tasks)
        assert await late[0] == 1


@pytest.mark.parametrize("thread", ["_reader", "_writer"])
async def test_an_error_of_the_disk_is_told_as_such_and_replaces_the_connection(
    store: SqliteStore, thread: str
) -> None:
    """SQLite may end the transaction by itself then: that there is none to roll back hides nothing."""
    await store.get("default", ["any"])
    connection = getattr(store, thread)
    before = connection._db

    def fails(_: Tx) -> None:
        before.execute("ROLLBACK")
        error = sqlite.OperationalError("disk I/O error")
        error.sqlite_errorcode = 10
        raise error

    with pytest.raises(StoreUnavailable, match="disk I/O error"):
        await connection.ask(fails)
    await store.get("default", ["any"])
    await submit(store, plain("after"))
    assert connection._db is not before
