"""S9: quotas through an app: set, kept, told precisely, and never in the middle of a workflow."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import (
    App,
    Context,
    Filter,
    InvalidInput,
    LimitExceeded,
    PartlyEnqueued,
    QuotaExceeded,
    Rate,
    Result,
    State,
    job,
    schedule,
)
from tests.apps import MakeApp, on_embedded_stores
from tests.client.schedules import Clock, report

MANY = 2500

go_on: dict[str, asyncio.Event] = {}


@pytest.fixture(autouse=True)
def _forget() -> None:
    go_on.clear()


@job
async def leaf(number: int) -> int:
    return number


@job
async def fan_out(ctx: Context, width: int) -> Result[None, int]:
    """Children by both ways."""
    await ctx.spawn_many([leaf(number) for number in range(width)])
    return ctx.queue(*(leaf(number) for number in range(width)))


@job
async def stand(name: str) -> None:
    await go_on.setdefault(name, asyncio.Event()).wait()


async def test_a_tenant_that_is_over_is_refused_and_nobody_else(make_app: MakeApp) -> None:
    """S9, safe-15: with what an HTTP answer needs: limit, current, maximum, retry_after."""
    app = make_app(leaf)
    acme = app.tenant("acme")
    await acme.set_quota(pending=2)
    await acme.enqueue_many([leaf(1), leaf(2)])
    with pytest.raises(QuotaExceeded, match="tenant 'acme' has 2 jobs waiting: 1 more are over") as refused:
        await acme.enqueue(leaf(3))
    error = refused.value
    assert (error.limit, error.current, error.maximum, error.retry_after) == ("pending", 2, 2, 1.0)
    await app.enqueue_many([leaf(number) for number in range(9)])
    use = await acme.quota()
    assert use is not None
    assert (use.quota.pending, use.pending, use.running, use.submissions) == (2, 2, 0, 0)
    assert await app.quota() is None
    assert await acme.remove_quota()
    assert not await acme.remove_quota()
    await acme.enqueue(leaf(3))


async def test_concurrent_enqueues_share_a_commit_and_not_a_refusal(make_app: MakeApp) -> None:
    """S9: each is let in or refused by itself."""
    app = make_app(leaf)
    await app.set_quota(pending=5)
    answers = await asyncio.gather(*(app.enqueue(leaf(number)) for number in range(20)), return_exceptions=True)
    assert sum(isinstance(answer, QuotaExceeded) for answer in answers) == 15
    assert await app.count(Filter()) == 5


async def test_a_batch_is_refused_whole_or_job_by_job(make_app: MakeApp) -> None:
    """S9, safe-3: atomic by default."""
    app = make_app(leaf)
    await app.set_quota(pending=MANY - 1)
    jobs = [leaf(number) for number in range(MANY)]
    with pytest.raises(QuotaExceeded) as refused:
        await app.enqueue_many(jobs)
    assert refused.value.retry_after is None, "it never fits"
    assert await app.count(Filter()) == 0
    with pytest.raises(PartlyEnqueued) as part:
        await app.enqueue_many(jobs, atomic=False)
    assert await app.count(Filter()) == MANY - 1, "all that fit, and no chunk is refused for one job"
    [(at, error)] = part.value.refused.items()
    assert (at, type(error)) == (MANY - 1, QuotaExceeded)


async def test_a_workflow_is_not_cut_in_the_middle(make_app: MakeApp) -> None:
    """S9, W1: spawned and queued jobs come in however many wait, and are counted."""
    app = make_app(fan_out, leaf)
    await app.set_quota(pending=1)
    root = await app.enqueue(fan_out(5))
    async with app.worker(types=[fan_out]) as worker:
        await worker.idle()
    use = await app.quota()
    assert use is not None
    assert use.pending == 10
    with pytest.raises(QuotaExceeded):
        await app.enqueue(leaf(1))
    async with app.running() as worker:
        await root.group(timeout=20)
        await worker.idle()
        await app.enqueue(leaf(1))


async def test_why_names_the_quota(make_app: MakeApp) -> None:
    """S9, O4: and what waits starts when there is room."""
    app = make_app(stand)
    await app.tenant("*").set_quota(running=1)
    async with app.running() as worker:
        first, second = await app.enqueue_many([stand("a"), stand("b")])
        await _until_running(app, first.id)
        why = await app.why(second.id)
        assert why.cause == "limit"
        assert why.explanation == (
            "1 of at most 1 jobs of tenant 'default' are running; raise it with app.tenant(...).set_quota(...) "
            "or `ropewalk quotas set`"
        )
        for name in ("a", "b"):
            go_on.setdefault(name, asyncio.Event()).set()
        await worker.idle()


@on_embedded_stores
async def test_a_fire_over_the_quota_is_reported_and_the_schedule_goes_on(make_app: MakeApp) -> None:
    """S9, T1: it is not made up for."""
    clock = Clock(make_app, schedules=[schedule("s", every=10, job=report())])
    app = clock.app
    await app.set_quota(submissions=Rate(1, per=25))
    async with app.running():
        await clock.pass_by(seconds=35)
        assert len((await app.search()).jobs) == 1
        assert [phase for phase, _ in clock.told] == ["schedule s", "schedule s"]
        assert "over its quota submissions=1 in 25 s; try again in" in clock.told[0][1]
        await clock.pass_by(seconds=5.1)
        assert len((await app.search()).jobs) == 2
        with pytest.raises(QuotaExceeded):
            await app.trigger_schedule("s")


async def test_quotas_of_all_tenants_are_listed(make_app: MakeApp) -> None:
    """S9: for whoever runs the store."""
    app = make_app(leaf)
    await app.tenant("b").set_quota(running=1)
    await app.tenant("a").set_quota(payload_bytes=100, submissions=Rate(5, per=1, algorithm="token"))
    assert [quota.tenant for quota in await app.quotas()] == ["a", "b"]


def test_from_blocking_code(new_app: MakeApp) -> None:
    app = new_app(leaf)
    acme = app.sync.tenant("acme")
    acme.set_quota(pending=1)
    acme.enqueue(leaf(1))
    with pytest.raises(QuotaExceeded):
        acme.enqueue(leaf(2))
    use = acme.quota()
    assert use is not None
    assert use.pending == 1
    assert [quota.tenant for quota in app.sync.quotas()] == ["acme"]
    assert acme.remove_quota()
    app.sync.close()


@pytest.mark.parametrize(
    ("arguments", "error", "field", "message"),
    [
        ({}, InvalidInput, "pending", "the quota of tenant 'default' is empty: give pending, running, submissions or"),
        ({"pending": 0}, InvalidInput, "pending", "pending=0 must be at least 1"),
        ({"pending": 100_001}, LimitExceeded, "pending", "pending=100,001 is over 100,000: every submission counts"),
        ({"running": True}, InvalidInput, "running", "running=True must be a whole number"),
        ({"payload_bytes": -1}, InvalidInput, "payload_bytes", "payload_bytes=-1 must be at least 1"),
        ({"submissions": 5}, InvalidInput, "submissions", "submissions=5 must be a Rate"),
    ],
)
async def test_what_is_no_quota_is_refused(
    make_app: MakeApp, arguments: dict[str, object], error: type[InvalidInput], field: str, message: str
) -> None:
    with pytest.raises(error, match=message) as refused:
        await make_app(leaf).set_quota(**arguments)  # type: ignore[arg-type]  # wrong on purpose
    assert refused.value.field == field


async def test_nobody_is_everybody(make_app: MakeApp) -> None:
    """S9: `*` has quotas, and no jobs."""
    with pytest.raises(InvalidInput, match="stands for every tenant") as refused:
        await make_app(leaf).tenant("*").enqueue(leaf(1))
    assert refused.value.field == "tenant"


async def _until_running(app: App, job_id: str) -> None:
    async with asyncio.timeout(10):
        while (await app.get(job_id)).state is not State.RUNNING:
            await asyncio.sleep(0.005)
