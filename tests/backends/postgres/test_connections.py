"""Connections that break, clocks, and what is told then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import psycopg
import pytest

from ropewalk.backends.postgres import PostgresStore
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.errors import OutcomeUnknown, StoreUnavailable
from ropewalk.ports.store.submission import Submission
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract.builders import claim_request, new_job, settlement
from tests.backends.postgres.conftest import OpenStore
from tests.servers.databases import sessions, terminate
from tests.servers.fixtures import StartPostgres
from tests.servers.postgres import Postgres, Settings

pytestmark = pytest.mark.asyncio

HOUR_US = 3_600_000_000
RAISE = "UPDATE job_by_stage SET priority = 1 WHERE seq = (SELECT seq FROM submitted WHERE id = %s)"


async def test_the_time_is_the_servers(url: str) -> None:
    """The process's clock may say what it likes."""
    store = PostgresStore(url, FakeRuntime(), allow_weaker_durability=True)
    await store.open()
    try:
        assert abs(await store.clock() - time.time_ns() // 1000) < HOUR_US
        await store.submit([Submission(jobs=[new_job(id="a")])])
        found = (await store.get(DEFAULT_TENANT, ["a"])).jobs["a"]
        assert abs(found.created_at - time.time_ns() // 1000) < HOUR_US
    finally:
        await store.close()


async def test_a_session_that_was_ended_is_replaced(postgres: Postgres, open_store: OpenStore, url: str) -> None:
    store = await open_store()
    await store.submit([Submission(jobs=[new_job(id="a")])])
    for pid in sessions(postgres, url.rpartition("/")[2].partition("?")[0]):
        terminate(postgres, pid)
    [answer] = await store.submit([Submission(jobs=[new_job(id="b")])])
    assert isinstance(answer, list)
    assert set((await store.get(DEFAULT_TENANT, ["a", "b"])).jobs) == {"a", "b"}


async def test_a_session_ended_within_a_transaction_changed_nothing(open_store: OpenStore) -> None:
    store = await open_store()

    def ended_halfway(tx: Tx) -> None:
        tx.run("UPDATE meta SET epoch = 7")
        tx.run("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(StoreUnavailable, match="nothing was changed") as told:
        await store._write(ended_halfway)
    assert not isinstance(told.value, OutcomeUnknown)
    assert await store._read(lambda tx: tx.value("SELECT epoch FROM meta")) == 0


async def test_a_commit_whose_answer_is_lost_is_unknown(open_store: OpenStore, url: str) -> None:
    """A trigger at the commit ends the session: nobody can say what became of it."""
    store = await open_store()
    with psycopg.connect(url.partition("?")[0], autocommit=True) as db:
        db.execute(
            "CREATE FUNCTION jobs.die() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
        )
        db.execute(
            "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON jobs.once_key DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION jobs.die()"
        )
    with pytest.raises(OutcomeUnknown, match="same id"):
        await store.once(DEFAULT_TENANT, "key", HOUR_US)


async def test_a_deadlock_is_run_again(open_store: OpenStore) -> None:
    """On the connections of those that wait: the shared ones give up a lock long before a deadlock is found."""
    one, other = await open_store(), await open_store()
    for store, mine in ((one, "a"), (other, "b")):
        await store.submit([Submission(jobs=[new_job(id=mine)])])
    tries = {"one": 0, "other": 0}

    def locks(name: str, first: str, second: str) -> Callable[[Tx], None]:
        def work(tx: Tx) -> None:
            tries[name] += 1
            tx.run(RAISE, (first,))
            if sum(tries.values()) <= 2:
                tx.run("SELECT pg_sleep(0.3)")  # until the other one holds its first
            tx.run(RAISE, (second,))

        return work

    await asyncio.gather(one._waiting.ask(locks("one", "a", "b")), other._waiting.ask(locks("other", "b", "a")))
    assert sorted(tries.values()) == [1, 2]


async def test_a_server_that_is_gone_and_comes_back(start_postgres: StartPostgres) -> None:
    server = start_postgres(Settings())
    store = PostgresStore(server.dsn(), SystemRuntime(), allow_weaker_durability=True)
    await store.open()
    try:
        await store.submit([Submission(jobs=[new_job(id="a")])])
        [job] = (await store.claim(claim_request(owner="w"))).jobs
        server.stop()
        with pytest.raises(StoreUnavailable):
            await store.settle("w", [settlement(job)])
        server.start()
        async with asyncio.timeout(20):
            while True:
                try:
                    [settled] = (await store.settle("w", [settlement(job)])).settled
                    break
                except StoreUnavailable:
                    await SystemRuntime().sleep(0.05)
        assert settled.lost is None
    finally:
        await store.close()
