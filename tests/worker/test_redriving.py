"""R16: a worker with nothing else to do brings dead-lettered jobs back, some at a time, a few times each."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from ropewalk import App, Event, InvalidInput, Redrive, State, UnknownJobType, job
from ropewalk.domain.jobs.operations import RetryRequest
from ropewalk.ports.store.operations import RetryAnswer
from ropewalk.testing import FakeRuntime
from ropewalk.worker.parts import WorkerParts
from ropewalk.worker.services import redriver as redriving
from ropewalk.worker.services.redriver import Redriver
from ropewalk.worker.worker import Worker
from tests.apps import MakeApp, embedded_store_kind
from tests.worker.faults import Faults

store_kind = embedded_store_kind

bank = {"away": True}
ran: list[int] = []
gates: list[asyncio.Event] = []


@pytest.fixture(autouse=True)
def _break() -> None:
    bank["away"] = True
    ran.clear()
    gates[:] = [asyncio.Event()]


@job(max_attempts=1)
async def charge(number: int) -> int:
    ran.append(number)
    if bank["away"]:
        raise ConnectionError("the bank is away")
    return number


@job(max_attempts=1)
async def other(number: int) -> int:
    raise ConnectionError("this one too")


@job
async def long_one() -> None:
    await gates[0].wait()


class Fleet:
    """An app whose clock moves only when told, with jobs that died."""

    def __init__(self, make_app: MakeApp, **options: Any) -> None:
        self.runtime = FakeRuntime()
        self.heard: list[Event] = []
        self.app: App = make_app(charge, other, long_one, runtime=self.runtime, on_event=self.heard.append, **options)

    async def let_die(self, count: int, *, tenant: str = "default") -> list[str]:
        """Their ids, in order."""
        client = self.app.tenant(tenant)
        handles = await client.enqueue_many([charge(number) for number in range(count)])
        async with self.app.worker(grace=0) as worker:
            await worker.idle()
        ids = [handle.id for handle in handles]
        assert set((await client.states(ids)).values()) == {State.DEAD_LETTER}
        ran.clear()
        self.heard.clear()
        return ids

    async def runs(self, ids: list[str], *, tenant: str = "default") -> list[int]:
        client = self.app.tenant(tenant)
        return [(await client.get(each)).run for each in ids]


def parts(worker: Worker) -> WorkerParts:
    assert worker._parts is not None
    return worker._parts


def redriver(worker: Worker) -> Redriver:
    found = parts(worker)._redriver
    assert found is not None
    return found


async def test_an_idle_worker_brings_them_back_in_time(make_app: MakeApp) -> None:
    fleet = Fleet(make_app)
    async with fleet.app as app:
        ids = await fleet.let_die(3)
        bank["away"] = False
        async with app.worker(redrive=Redrive(types=[charge], every=60)) as worker:
            await worker.idle()
            await fleet.runtime.advance(seconds=29)
            assert ran == [], "at least half of `every` has to pass"
            await fleet.runtime.advance(seconds=62)
            await worker.idle()
        assert sorted(ran) == [0, 1, 2]
        infos = [await app.get(each) for each in ids]
    assert [(info.state, info.run, info.attempt) for info in infos] == [(State.COMPLETED, 2, 1)] * 3


async def test_history_and_events_show_it(make_app: MakeApp) -> None:
    fleet = Fleet(make_app)
    async with fleet.app as app:
        [died] = await fleet.let_die(1)
        async with app.worker(redrive=Redrive(types=["charge"])) as worker:
            await worker.idle()
            await redriver(worker).run_once()
            await worker.idle()
        kinds = [(entry.kind, entry.reason) for entry in await app.history(died)]
    assert ("retried", "redriven") in kinds
    assert [kind for kind, _ in kinds].count("started") == 2
    told = [(event.kind, event.job_id, event.attempt, event.message) for event in fleet.heard if event.kind == "queued"]
    assert told == [("queued", died, 0, "redriven")]


async def test_a_job_that_never_works_comes_back_only_so_often(make_app: MakeApp) -> None:
    """R16: bounded by `run`, which counts manual retries too."""
    fleet = Fleet(make_app)
    async with fleet.app as app:
        ids = await fleet.let_die(2)
        await app.retry(ids[1])
        async with app.worker(redrive=Redrive(types=[charge], max_times=2)) as worker:
            await worker.idle()
            for _ in range(6):
                await redriver(worker).run_once()
                await worker.idle()
        assert await fleet.runs(ids) == [3, 3]
        assert ran.count(0) == 2 and ran.count(1) == 2
        assert (await app.get(ids[0])).state is State.DEAD_LETTER


async def test_some_at_a_time_the_oldest_first_past_those_that_are_used_up(make_app: MakeApp) -> None:
    fleet = Fleet(make_app)
    async with fleet.app as app:
        ids = await fleet.let_die(7)
        async with app.worker(redrive=Redrive(types=[charge], batch=3, max_times=1)) as worker:
            await worker.idle()
            sizes: list[list[int]] = []
            for _ in range(5):
                ran.clear()
                await redriver(worker).run_once()
                await worker.idle()
                sizes.append(sorted(ran))
        assert sizes == [[0, 1, 2], [3, 4, 5], [6], [], []]
        assert await fleet.runs(ids) == [2] * 7
        ran.clear()
        await fleet.let_die(1)
        async with app.worker(redrive=Redrive(types=[charge], batch=3, max_times=1)) as worker:
            await worker.idle()
            await redriver(worker).run_once()
            await worker.idle()
        assert ran == [0], "found behind seven that are used up, three a page"


async def test_only_the_chosen_types_and_only_dead_letters(make_app: MakeApp) -> None:
    fleet = Fleet(make_app)
    async with fleet.app as app:
        [died] = await fleet.let_die(1)
        left = await app.enqueue(other(1))
        gone = await app.enqueue(charge(9), delay=60)
        await app.cancel(gone.id)
        async with app.worker(redrive=Redrive(types=[charge])) as worker:
            await worker.idle()
            await redriver(worker).run_once()
            await worker.idle()
        assert await fleet.runs([died, left.id, gone.id]) == [2, 1, 1]


async def test_older_than(make_app: MakeApp) -> None:
    fleet = Fleet(make_app)
    async with fleet.app as app:
        [died] = await fleet.let_die(1)
        async with app.worker(redrive=Redrive(types=[charge], older_than=timedelta(minutes=2), every=86_400)) as worker:
            await worker.idle()
            await fleet.runtime.advance(minutes=1, seconds=59)
            await redriver(worker).run_once()
            assert await fleet.runs([died]) == [1]
            await fleet.runtime.advance(seconds=1)
            await redriver(worker).run_once()
            assert await fleet.runs([died]) == [2]


async def test_a_busy_worker_leaves_them(make_app: MakeApp) -> None:
    fleet = Fleet(make_app)
    async with fleet.app as app:
        [died] = await fleet.let_die(1)
        await app.enqueue(long_one())
        async with app.worker(redrive=Redrive(types=[charge]), grace=0) as worker:
            async with asyncio.timeout(10):
                while not parts(worker).executor.running:
                    await fleet.runtime.settle()
            await redriver(worker).run_once()
            assert await fleet.runs([died]) == [1]
            gates[0].set()
            await worker.idle()
            await redriver(worker).run_once()
            assert await fleet.runs([died]) == [2]


async def test_several_redrivers_do_no_harm(make_app: MakeApp) -> None:
    fleet = Fleet(make_app)
    async with fleet.app as app:
        ids = await fleet.let_die(20)
        asked = Redrive(types=[charge], batch=20, max_times=1)
        async with app.worker(redrive=asked) as one, app.worker(redrive=asked) as two:
            await asyncio.gather(one.idle(), two.idle())
            await asyncio.gather(redriver(one).run_once(), redriver(two).run_once())
            await asyncio.gather(one.idle(), two.idle())
        assert await fleet.runs(ids) == [2] * 20
        assert sorted(ran) == list(range(20))


async def test_one_that_died_again_since_it_was_seen_is_left(make_app: MakeApp) -> None:
    """R16: two look at the same time; before the second acts, the first has used up what is left."""
    fleet = Fleet(make_app)
    async with fleet.app as app:
        [died] = await fleet.let_die(1)
        asked = Redrive(types=[charge], max_times=1)
        async with app.worker(redrive=asked) as one, app.worker(redrive=asked) as two:
            await asyncio.gather(one.idle(), two.idle())
            seen, _ = await redriver(one)._find("default", 10, pages=1)
            await redriver(two).run_once()
            await asyncio.gather(one.idle(), two.idle())
            assert [job.id for job in seen] == [died]
            await redriver(one)._retry("default", seen)
            assert await fleet.runs([died]) == [2]


@pytest.mark.parametrize(
    ("served", "asked", "runs"),
    [(None, None, [2, 2]), (["acme"], None, [1, 2]), (None, ["acme"], [1, 2]), (None, ["default", "acme"], [2, 2])],
)
async def test_whose(make_app: MakeApp, served: list[str] | None, asked: list[str] | None, runs: list[int]) -> None:
    fleet = Fleet(make_app)
    async with fleet.app as app:
        [own], [acmes] = await fleet.let_die(1), await fleet.let_die(1, tenant="acme")
        async with app.worker(tenants=served, redrive=Redrive(types=[charge], tenants=asked)) as worker:
            await worker.idle()
            await redriver(worker).run_once()
            await worker.idle()
        assert [*await fleet.runs([own]), *await fleet.runs([acmes], tenant="acme")] == runs


async def rounds(fleet: Fleet, worker: Worker, count: int, ids: dict[str, list[str]]) -> list[dict[str, int]]:
    """How many of each tenant came back in each round; tenants without any are left out."""
    told: list[dict[str, int]] = []
    for _ in range(count):
        before = {tenant: sum(await fleet.runs(of, tenant=tenant)) for tenant, of in ids.items()}
        await redriver(worker).run_once()
        await worker.idle()
        after = {tenant: sum(await fleet.runs(of, tenant=tenant)) for tenant, of in ids.items()}
        told.append({tenant: after[tenant] - before[tenant] for tenant in ids if after[tenant] > before[tenant]})
    return told


@pytest.mark.parametrize("named", [False, True])
async def test_no_tenant_waits_until_another_has_nothing_left(make_app: MakeApp, named: bool) -> None:
    """R16: whoever has many has its turn like the others, and what one leaves of a batch is the next one's."""
    fleet = Fleet(make_app)
    async with fleet.app as app:
        ids = {tenant: await fleet.let_die(count, tenant=tenant) for tenant, count in (("a", 9), ("b", 1), ("c", 6))}
        asked = Redrive(types=[charge], batch=4, max_times=1, tenants=[*ids] if named else None)
        async with app.worker(redrive=asked) as worker:
            await worker.idle()
            told = await rounds(fleet, worker, 6, ids)
    assert told == [{"a": 4}, {"b": 1, "c": 3}, {"a": 4}, {"c": 3, "a": 1}, {}, {}]


async def test_a_tenant_whose_jobs_are_all_used_up_stands_in_nobodys_way(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R16: what may be looked through in a round is bounded, over all tenants; the next round goes on behind it."""
    monkeypatch.setattr(redriving, "PAGES_MAX", 2)
    fleet = Fleet(make_app)
    async with fleet.app as app:
        ids = {tenant: await fleet.let_die(count, tenant=tenant) for tenant, count in (("a", 9), ("b", 1))}
        await app.tenant("a").retry_many(ids["a"])
        async with app.worker(grace=0) as worker:
            await worker.idle()
        async with app.worker(redrive=Redrive(types=[charge], batch=2, max_times=1)) as worker:
            await worker.idle()
            assert await rounds(fleet, worker, 3, ids) == [{}, {"b": 1}, {}]


async def test_the_first_that_comes_back_does_not_keep_the_next_tenants_from_it(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R16: with it the worker has something to do, and is idle no more."""
    fleet = Fleet(make_app)
    async with fleet.app as app:
        for tenant in ("a", "b"):
            await fleet.let_die(1, tenant=tenant)
        async with app.worker(redrive=Redrive(types=[charge])) as worker:
            await worker.idle()
            came: list[str] = []
            store, retry = parts(worker).worker_context.store, parts(worker).worker_context.store.retry

            async def watched(tenant: str, ids: list[str], request: RetryRequest) -> list[RetryAnswer]:
                came.append(tenant)
                return await retry(tenant, ids, request)

            monkeypatch.setattr(store, "retry", watched)
            monkeypatch.setattr(redriver(worker), "_idle", lambda: not came)
            await redriver(worker).run_once()
    assert came == ["a", "b"]


async def test_a_tenant_that_comes_later_is_found(make_app: MakeApp) -> None:
    fleet = Fleet(make_app)
    async with fleet.app as app, app.worker(redrive=Redrive(types=[charge], max_times=1)) as worker:
        await worker.idle()
        await redriver(worker).run_once()
        [died] = await fleet.let_die(1, tenant="newcomer")
        await worker.idle()
        await redriver(worker).run_once()
        await worker.idle()
        assert await fleet.runs([died], tenant="newcomer") == [2]


async def test_a_busy_worker_asks_nothing(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet(make_app)
    async with fleet.app as app:
        await fleet.let_die(1)
        await app.enqueue(long_one())
        async with app.worker(redrive=Redrive(types=[charge]), grace=0) as worker:
            async with asyncio.timeout(10):
                while not parts(worker).executor.running:
                    await fleet.runtime.settle()
            monkeypatch.setattr(parts(worker).worker_context.store, "tenants_with", None)  # it would raise
            await redriver(worker).run_once()
            gates[0].set()
            await worker.idle()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"types": []}, "types is empty"),
        ({"types": None}, "types=None must be job types"),
        ({"types": [3]}, "types=3 must be a job type, or the name of one"),
        ({"types": [charge], "tenants": []}, "tenants is empty"),
        ({"types": [charge], "batch": 0}, "batch=0 must be at least 1"),
        ({"types": [charge], "max_times": 0}, "max_times=0 must be at least 1"),
        ({"types": [charge], "every": 0}, "every=0 must be more than 0 seconds"),
        ({"types": [charge], "older_than": -1}, "older_than=-1 is negative"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        Redrive(**options)  # type: ignore[arg-type] # that is the point


def test_a_type_this_worker_does_not_serve_is_refused(make_app: MakeApp) -> None:
    app = make_app(charge, other)
    with pytest.raises(UnknownJobType, match="no job type named 'other'"):
        app.worker(types=[charge], redrive=Redrive(types=[other]))


async def test_a_job_whose_retry_fails_keeps_no_other_from_coming_back(make_app: MakeApp) -> None:
    told: list[str] = []
    fleet = Fleet(make_app, on_error=lambda _, phase: told.append(phase))
    async with fleet.app as app:
        ids = await fleet.let_die(3)
        bank["away"] = False
        Faults(app).fail_for("retry", ids[1], RuntimeError("a defect"))
        async with app.worker(redrive=Redrive(types=[charge])) as worker:
            await worker.idle()
            await redriver(worker).run_once()
            await worker.idle()
        states = await app.states(ids)
    assert [states[each] for each in ids] == [State.COMPLETED, State.DEAD_LETTER, State.COMPLETED]
    assert told == [f"redrive of job {ids[1]}"]
