"""The network between workers and PostgreSQL: late, cut, mute, or losing the answer to a commit."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from ropewalk import App, Context, Filter, Handle, OutcomeUnknown, State, job
from ropewalk.backends.postgres import opening
from ropewalk.backends.postgres.connections import ReadingSession, Session
from ropewalk.backends.postgres.wire.connection import WatchedConnection
from tests.servers.postgres import Postgres
from tests.servers.proxy import LostPart, Proxy
from tests.torture.harness import nothing_lives, until
from tests.torture.outages import RESUME_SECONDS_MAX

pytestmark = pytest.mark.torture

CUTS = 10
SILENCED = 400
"""jobs: enough not to be done before it falls silent"""
LATENCY_SECONDS = 0.05
LEASE_SECONDS = 5.0
"""fifty of the slow round trips: a renewal takes five, and may wait for a claim of ten"""
ran: list[str] = []
said: list[str] = []
"""by the loops of workers, about errors they went on after"""
begun: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)
may_end: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)
"""by attempt"""


@job(max_crashes=20, max_attempts=20)
async def reverse(ctx: Context, word: str, seconds: float = 0.0) -> str:
    ran.append(ctx.id)
    await asyncio.sleep(seconds)
    return word[::-1]


@job
async def take_turns(ctx: Context) -> int:
    """Each attempt tells that it began, and ends when it may."""
    begun[ctx.attempt].set()
    await may_end[ctx.attempt].wait()
    return ctx.attempt


@job(max_attempts=1)
async def ask(ctx: Context, verb: str) -> str:
    """Asks the store for something after its outage began, and must not hear of it."""
    ran.append(ctx.id)
    begun[len(ran)].set()
    await may_end[1].wait()
    return str(await CALLS[verb](ctx))


@job(max_attempts=1)
def ask_in_a_thread(ctx: Context, meeting: str) -> bool:
    return _ask_later(ctx, Path(meeting) / "thread")


@job(max_attempts=1, executor="process")
def ask_in_a_process(ctx: Context, meeting: str) -> bool:
    return _ask_later(ctx, Path(meeting) / "process")


def _ask_later(ctx: Context, begun: Path) -> bool:
    """Once the outage has begun, which a file says: one handler is in another process."""
    begun.touch()
    while not (begun.parent / "away").exists():
        time.sleep(0.02)
    return ctx.sync.once(begun.name)


@job(max_attempts=1)
async def transact(ctx: Context) -> int:
    ran.append(ctx.id)
    async with ctx.transaction() as tx:
        await tx.execute("INSERT INTO mine VALUES ('whoever')")
        return tx.complete(len(ran))


async def pay() -> str:
    return "paid"


async def _states(ctx: Context) -> str:
    return (await ctx.states([ctx.id]))[ctx.id].value


CALLS: dict[str, Callable[[Context], Awaitable[object]]] = {
    "wait_for": lambda ctx: ctx.wait_for("ring"),
    "step": lambda ctx: ctx.step("pay", pay),
    "checkpoint": lambda ctx: ctx.checkpoint(1),
    "spawn": lambda ctx: ctx.spawn(reverse("dekram"), key="only"),
    "states": _states,
    "once": lambda ctx: ctx.once("only"),
}


@pytest.fixture(autouse=True)
def _forget() -> None:
    for each in (ran, said, begun, may_end):
        each.clear()


@pytest_asyncio.fixture
async def proxy(postgres: Postgres, postgres_database: str) -> AsyncIterator[Proxy]:
    async with Proxy(postgres.port) as between:
        yield between


@pytest.fixture
def app(postgres: Postgres, postgres_database: str, proxy: Proxy) -> App:
    """Every connection of it goes through the proxy."""
    return app_on(postgres_database.replace(f":{postgres.port}/", f":{proxy.port}/"))


@pytest.fixture
def straight(postgres_database: str) -> App:
    """One that goes straight to the server."""
    return app_on(postgres_database)


def app_on(url: str) -> App:
    return App(
        url,
        jobs=[reverse, take_turns, ask, ask_in_a_thread, ask_in_a_process, transact],
        allow_weaker_durability=True,
        on_error=lambda error, phase: said.append(f"{phase}: {error}"),
    )


@pytest.mark.parametrize("part", ["request", "reply", "silence"])
async def test_a_submission_whose_commit_is_lost_is_unknown_and_repeated_is_one_job(
    app: App, proxy: Proxy, part: LostPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """safe-17: success is never reported before the commit, an unknown outcome as unknown."""
    be_impatient(monkeypatch)
    async with app:
        built = reverse(word="dekram")
        proxy.lose_commit(part, mentioning=built.id.encode())
        with pytest.raises(OutcomeUnknown, match="same id"):
            await app.enqueue(built)
        assert proxy.commits_lost == 1
        assert await app.count() == (part != "request")
        again = await app.enqueue(built)
        assert (again.id, again.duplicate) == (built.id, part != "request")
        assert await app.count() == 1


@pytest.mark.parametrize("part", ["request", "reply", "silence"])
async def test_a_completion_whose_commit_is_lost_counts_once(
    app: App, proxy: Proxy, part: LostPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """safe-6, safe-17: asked again the store has it already, and refuses; or has it then."""
    be_impatient(monkeypatch)
    async with app, app.worker() as worker:
        proxy.lose_commit(part, mentioning=b"marked")  # which only the settlement does
        handle = await app.enqueue(reverse(word="dekram"))
        assert await handle.result(timeout=10) == "marked"
        await until(lambda: worker.settled + worker.refused == 1, "the settlement is answered")
        assert proxy.commits_lost == 1
        assert worker.refused == (part != "request")
        assert await kinds(app, handle.id) == ["queued", "started", "complete"]
        assert ran == [handle.id]


async def test_a_completion_that_arrives_late_changes_nothing(app: App, straight: App, proxy: Proxy) -> None:
    """safe-5: it was sent under a lease, held up by the network, and arrives while another worker runs the job."""
    async with app, straight:
        async with app.worker(lease=2.0) as first:
            handle = await app.enqueue(take_turns())
            await asyncio.wait_for(begun[1].wait(), 10)
            proxy.go_mute()
            may_end[1].set()
            async with straight.worker(lease=2.0) as second:
                await asyncio.wait_for(begun[2].wait(), 20)
                proxy.speak_again(forgetting=False)
                await until(lambda: first.refused == 1, "the late one is refused")
                may_end[2].set()
                assert await handle.result(timeout=10) == 2
                assert (first.settled, second.refused) == (0, 0)
        assert await kinds(straight, handle.id) == ["queued", "started", "lose", "started", "complete"]


async def test_jobs_of_a_claim_whose_answer_is_lost_are_given_back_with_the_next(
    app: App, straight: App, proxy: Proxy
) -> None:
    """live-2, safe-7: the worker gives back what it may have been given, long before the lease is over."""
    async with app, straight, app.worker(lease=30.0):
        built = reverse(word="dekram")
        # The claim that is given it mentions it, whether it is one statement or several.
        proxy.lose_commit("reply", mentioning=built.id.encode(), without_commit=True)
        handle = await straight.enqueue(built)
        await until(lambda: proxy.commits_lost == 1, "the claim is lost")
        assert (await handle.status()).state is State.RUNNING
        assert await handle.result(timeout=20) == "marked"
        assert await kinds(straight, handle.id) == ["queued", "started", "release", "started", "complete"]
        assert ran == [handle.id]


async def test_what_handlers_ask_for_in_an_outage_costs_no_attempt(
    app: App, straight: App, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """live-4: the outage is longer than the lease, and each job has one attempt."""
    be_impatient(monkeypatch)
    async with app, straight, app.worker(lease=2.0, concurrency=20):
        handles: dict[str, Handle[Any, Any]] = {verb: await straight.enqueue(ask(verb)) for verb in CALLS}
        await straight.signal(handles["wait_for"].id, "ring", "rung")
        handles["thread"] = await straight.enqueue(ask_in_a_thread(str(tmp_path)))
        handles["process"] = await straight.enqueue(ask_in_a_process(str(tmp_path)))
        await until(lambda: len(ran) == len(CALLS) and len(list(tmp_path.iterdir())) == 2, "they run")
        proxy.go_mute()
        may_end[1].set()
        (tmp_path / "away").touch()
        await asyncio.sleep(6)
        proxy.speak_again(forgetting=True)
        results = {verb: await handle.result(timeout=30) for verb, handle in handles.items()}
        assert results.pop("spawn") != ""
        assert results == {
            "wait_for": "rung",
            "step": "paid",
            "checkpoint": "None",
            "states": "running",
            "once": "True",
            "thread": True,
            "process": True,
        }
        for handle in handles.values():
            assert await kinds(straight, handle.id) == ["queued", "started", "complete"]
        assert await straight.count(Filter(types=["reverse"])) == 1


@pytest.mark.parametrize("part", ["request", "reply", "silence"])
async def test_a_signal_is_taken_once_when_the_answer_is_lost(
    app: App, straight: App, proxy: Proxy, part: LostPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """live-4, safe-17: a lost answer costs no attempt either."""
    be_impatient(monkeypatch)
    async with app, straight, app.worker():
        handle = await straight.enqueue(ask("wait_for"))
        await straight.signal(handle.id, "ring", "rung once")
        await asyncio.wait_for(begun[1].wait(), 10)
        proxy.lose_commit(part, mentioning=b"rung once")
        may_end[1].set()
        assert await handle.result(timeout=20) == "rung once"
        assert proxy.commits_lost == 1
        assert ran == [handle.id]


@pytest.mark.parametrize("part", ["request", "reply"])
async def test_a_transaction_whose_commit_is_lost_costs_no_attempt(
    app: App, proxy: Proxy, part: LostPart, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """live-4, safe-6: it is not repeated, but the attempt is given back, and its writes are there once."""
    be_impatient(monkeypatch)
    async with app, app.worker():
        with psycopg.connect(postgres_database, autocommit=True) as db:
            db.execute("CREATE TABLE mine (what TEXT)")
            proxy.lose_commit(part, mentioning=b"whoever")
            handle = await app.enqueue(transact())
            assert await handle.result(timeout=20) == (2 if part == "request" else 1)
            assert proxy.commits_lost == 1
            assert db.execute("SELECT count(*) FROM mine").fetchone() == (1,)


async def test_connections_cut_again_and_again_lose_nothing(app: App, straight: App, proxy: Proxy) -> None:
    """safe-2, safe-6: every job is completed, once."""
    built = [reverse(word="dekram", seconds=0.05) for _ in range(30 * CUTS)]
    async with app, straight, app.worker(lease=2.0):
        for number in range(CUTS):
            done = await completed(straight)
            await straight.enqueue_many(built[number::CUTS])
            await cut(proxy)
            await until_more(straight, done)
        await until(lambda: nothing_lives(straight), "every job is terminal")
        lives = [await kinds(straight, each.id) for each in built]
        assert [life.count("complete") for life in lives] == [1] * len(built)


async def test_a_slow_network_is_only_slow(app: App, straight: App, proxy: Proxy) -> None:
    """live-3: leases are renewed over it and work flows; nothing is lost, nothing runs twice."""
    async with straight, app:
        proxy.latency_seconds = LATENCY_SECONDS
        async with app.worker(lease=LEASE_SECONDS, concurrency=20) as worker:
            built = [reverse(word="dekram", seconds=1.4 * LEASE_SECONDS if n < 3 else 0.05) for n in range(100)]
            await app.enqueue_many(built)
            await until(lambda: nothing_lives(straight), "every job is terminal")
            assert worker.refused == 0
        proxy.latency_seconds = 0.0
        assert await completed(straight) == len(built)
        assert sorted(ran) == sorted(each.id for each in built)


@pytest.mark.parametrize("forgetting", [True, False])
async def test_workers_resume_after_a_black_hole(
    app: App, straight: App, proxy: Proxy, forgetting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """live-4."""
    be_impatient(monkeypatch)
    await fall_silent(app, straight, proxy, seconds=3.0, forgetting=forgetting)
    assert any("nothing was changed" in each for each in said), "it was noticed"


@pytest.mark.system
async def test_workers_resume_after_a_long_black_hole(app: App, straight: App, proxy: Proxy) -> None:
    """live-4: within 30 s after the path is back, without restart."""
    await fall_silent(app, straight, proxy, seconds=20.0, forgetting=True)


async def fall_silent(app: App, straight: App, proxy: Proxy, *, seconds: float, forgetting: bool) -> None:
    async with app, straight, app.worker(lease=2.0):
        await straight.enqueue_many([reverse(word="dekram", seconds=0.05) for _ in range(SILENCED)])
        await until_more(straight, 0)
        proxy.go_mute()
        await asyncio.sleep(seconds)
        done = await completed(straight)
        assert done < SILENCED
        proxy.speak_again(forgetting=forgetting)
        began = time.monotonic()
        await until_more(straight, done, seconds=RESUME_SECONDS_MAX)
        print(f"forgetting={forgetting}: resumed {time.monotonic() - began:.1f} s after {seconds:g} s of silence")
        await until(lambda: nothing_lives(straight), "every job is terminal", seconds=RESUME_SECONDS_MAX)
        assert await completed(straight) == SILENCED


def be_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the usual patience: what is waited for is the same."""
    monkeypatch.setattr(WatchedConnection, "silence_seconds_max", 1.5)
    monkeypatch.setattr(Session, "_silence_seconds_max", 1.5)
    monkeypatch.setattr(ReadingSession, "_silence_seconds_max", 1.5)
    monkeypatch.setattr(opening, "CONNECT_SECONDS_MAX", 2)


async def cut(proxy: Proxy) -> None:
    """Every connection, and wait until there is a new one."""
    made = proxy.connections_made
    proxy.cut()
    await until(lambda: proxy.connections_made > made, "it connects again")


async def until_more(app: App, done: int, *, seconds: float = 30.0) -> None:
    """Wait until more jobs than that are completed."""

    async def more() -> bool:
        return await completed(app) > done

    await until(more, f"more than {done} are completed", seconds=seconds)


async def completed(app: App) -> int:
    return await app.count(Filter(states=[State.COMPLETED]))


async def kinds(app: App, job_id: str) -> list[str]:
    return [entry.kind for entry in await app.history(job_id)]
