"""A transaction of one trip, spoken by the loop itself: what it does, and what is left when it cannot."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Final

import pytest

from ropewalk.backends.postgres import PostgresStore
from ropewalk.backends.postgres.connections import Session
from ropewalk.backends.postgres.wire.statement import Statement
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.jobs.states import Status
from ropewalk.errors import OutcomeUnknown
from ropewalk.ports.store.submission import Submission
from ropewalk.testing.contract.builders import claim_request, gate_on, new_job, settlement
from tests.backends.postgres.conftest import OpenStore
from tests.servers.databases import sessions, terminate
from tests.servers.postgres import Postgres

pytestmark = pytest.mark.asyncio

NAP: Final = Statement(b"SELECT pg_sleep(0.5)")
LONG_NAP: Final = Statement(b"SELECT pg_sleep(3)")
RAISE_EPOCH: Final = Statement(b"UPDATE meta SET epoch = epoch + 1")
FAIL: Final = Statement(b"SELECT 1 / 0")
DIE: Final = Statement(b"SELECT pg_terminate_backend(pg_backend_pid())")


async def connected(store: PostgresStore) -> Session:
    session = store._settlements
    await session.ask(lambda _: None)
    await session.ask(lambda tx: tx.value("SELECT 1"))
    return session


async def epoch(store: PostgresStore) -> int:
    found: int = await store._read(lambda tx: tx.value("SELECT epoch FROM meta"))
    return found


async def test_it_is_committed_with_the_answer(open_store: OpenStore) -> None:
    store = await open_store()
    session = await connected(store)
    answers = await session.transact_on_loop([RAISE_EPOCH, Statement(b"SELECT 7::bigint")])
    assert answers is not None
    assert [answers[0].rowcount, answers[1].fetchone()] == [1, (7,)]
    assert await epoch(store) == 1


async def test_the_loop_goes_on_meanwhile(open_store: OpenStore) -> None:
    session = await connected(await open_store())
    napping = asyncio.ensure_future(session.transact_on_loop([NAP]))
    turns = 0
    while not napping.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert napping.result() is not None
    assert turns > 10


async def test_nothing_happens_before_there_is_a_connection(open_store: OpenStore) -> None:
    store = await open_store()
    assert await store._settlements.transact_on_loop([RAISE_EPOCH]) is None
    assert await epoch(store) == 0


async def test_nothing_happens_while_the_thread_uses_it(open_store: OpenStore) -> None:
    store = await open_store()
    session = await connected(store)
    inside, leave = threading.Event(), threading.Event()

    def work(tx: Tx) -> None:
        tx.value("SELECT 1")
        inside.set()
        leave.wait(10)

    using = asyncio.ensure_future(session.ask(work))
    await asyncio.to_thread(inside.wait, 10)
    assert await session.transact_on_loop([RAISE_EPOCH]) is None
    leave.set()
    await using
    assert await session.transact_on_loop([RAISE_EPOCH]) is not None
    assert await epoch(store) == 1


async def test_the_thread_waits_for_the_loop(open_store: OpenStore) -> None:
    session = await connected(await open_store())
    napping = asyncio.ensure_future(session.transact_on_loop([NAP]))
    await asyncio.sleep(0)
    assert await session.ask(lambda tx: tx.value("SELECT 1")) == 1
    assert napping.done()
    assert await napping is not None


async def test_a_statement_that_fails_takes_all_of_it_with_it(open_store: OpenStore) -> None:
    store = await open_store()
    session = await connected(store)
    assert await session.transact_on_loop([RAISE_EPOCH, FAIL]) is None
    assert await epoch(store) == 0
    assert await session.transact_on_loop([RAISE_EPOCH]) is not None
    assert await epoch(store) == 1


async def test_a_session_that_ends_in_the_middle_leaves_it_unknown(open_store: OpenStore) -> None:
    store = await open_store()
    session = await connected(store)
    with pytest.raises(OutcomeUnknown):
        await session.transact_on_loop([RAISE_EPOCH, DIE])
    assert await session.transact_on_loop([RAISE_EPOCH]) is None
    assert await session.ask(lambda tx: tx.value("SELECT 1")) == 1
    assert await session.transact_on_loop([RAISE_EPOCH]) is not None


async def test_a_session_that_was_ended_before_is_not_used(postgres: Postgres, open_store: OpenStore, url: str) -> None:
    """live-4: nobody is told of an unknown outcome for it."""
    store = await open_store()
    for job_id in "abc":
        await store.submit([Submission(jobs=[new_job(id=job_id)])])
    [job] = (await store.claim(claim_request(owner="w"))).jobs
    for pid in sessions(postgres, url.rpartition("/")[2].partition("?")[0]):
        terminate(postgres, pid)
    [other] = (await store.claim(claim_request(owner="w"))).jobs
    settled = (await store.settle("w", [settlement(job), settlement(other)])).settled
    assert [each.lost for each in settled] == [None, None]


async def test_silence_is_limited(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """live-4."""
    monkeypatch.setattr(Session, "_silence_seconds_max", 0.5)
    session = await connected(await open_store())
    with pytest.raises(OutcomeUnknown, match=r"no answer for 0\.5 s"):
        await session.transact_on_loop([LONG_NAP])
    assert await session.ask(lambda tx: tx.value("SELECT 1")) == 1


async def test_given_up_in_the_middle_it_leaves_no_connection_behind(open_store: OpenStore) -> None:
    session = await connected(await open_store())
    napping = asyncio.ensure_future(session.transact_on_loop([LONG_NAP]))
    await asyncio.sleep(0)  # it is sent by then
    napping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await napping
    assert await session.transact_on_loop([NAP]) is None
    assert await session.ask(lambda tx: tx.value("SELECT 1")) == 1


async def test_it_may_be_used_from_another_loop(open_store: OpenStore) -> None:
    store = await open_store()
    session = await connected(store)
    assert await session.transact_on_loop([RAISE_EPOCH]) is not None
    assert await asyncio.to_thread(lambda: asyncio.run(session.transact_on_loop([RAISE_EPOCH]))) is not None
    assert await session.transact_on_loop([RAISE_EPOCH]) is not None
    assert await epoch(store) == 3


async def test_a_fork_in_the_middle_leaves_it_to_the_parent(open_store: OpenStore) -> None:
    store = await open_store()
    session = await connected(store)
    napping = asyncio.ensure_future(session.transact_on_loop([RAISE_EPOCH, NAP]))
    await asyncio.sleep(0)  # it is sent by then
    child = os.fork()
    if child == 0:
        os._exit(0 if session._db is None and session._busy.acquire(blocking=False) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert await napping is not None
    assert await epoch(store) == 1
    assert await session.ask(lambda tx: tx.value("SELECT 1")) == 1


async def test_jobs_that_others_depend_on_since_they_were_claimed(open_store: OpenStore) -> None:
    """safe-9: what the loop cannot do alone is done all the same, all of it in one transaction."""
    store = await open_store()
    for job_id in "abc":
        await store.submit([Submission(jobs=[new_job(id=job_id)])])
    jobs = (await store.claim(claim_request(owner="w", limit=3))).jobs
    await store.submit([Submission(jobs=[new_job(id="child", gate=gate_on("b"))])])
    settled = (await store.settle("w", [settlement(job, result=b"1") for job in jobs])).settled
    assert [each.lost for each in settled] == [None] * 3
    found = (await store.get("default", ["a", "b", "c", "child"])).jobs
    assert [found[job_id].status for job_id in "abc"] == [Status.COMPLETED] * 3
    assert found["child"].unmet == 0
