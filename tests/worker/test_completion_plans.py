"""What follows a completion: refused completion plans, continuations, dependencies and what becomes of them."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import App, Conflict, Context, JobCancelled, JobFailed, NotFound, Result, State, job
from ropewalk.definitions.dependency import Chain, Group
from ropewalk.observe.events import Event
from tests.apps import MakeApp

gates: list[asyncio.Event] = []


@pytest.fixture(autouse=True)
def _closed_gate() -> None:
    gates[:] = [asyncio.Event()]


@job
async def value(number: int) -> int:
    return number


@job(max_attempts=1)
async def breaks(ctx: Context) -> int:
    if ctx.run == 1:
        raise ValueError("broken")
    return ctx.run


@job
async def total(ctx: Context) -> int:
    return sum(each.result for each in ctx.dependencies)


@job
async def endings(ctx: Context) -> list[str]:
    return [each.ending.value for each in ctx.dependencies if each.ending is not None]


@job
async def held() -> str:
    await gates[0].wait()
    return "through"


@job
async def queues_behind_nothing(ctx: Context) -> Result[None, int]:
    return ctx.queue(total().using(depends_on="no-such-job"))


@job
async def folds_and_queues_behind_nothing(ctx: Context) -> Result[int, int]:
    return ctx.result(1, append=lambda so_far, more: (so_far or 0) + more).next(total().using(depends_on="no-such-job"))


@job
async def queues_a_taken_id(ctx: Context) -> Result[None, int]:
    return ctx.queue(value(99).using(id="taken"))


@job
async def countdown(ctx: Context, n: int) -> Result[str, str]:
    return ctx.continue_with(countdown(n - 1)) if n else ctx.result("lift-off")


@job
async def fan_out(ctx: Context, count: int) -> Result[None, str | int]:
    return ctx.queue(held()).next(*(value(number) for number in range(count)))


ALL = (
    value,
    breaks,
    total,
    endings,
    held,
    queues_behind_nothing,
    folds_and_queues_behind_nothing,
    queues_a_taken_id,
    countdown,
    fan_out,
)


@pytest.mark.parametrize(
    ("flow", "code"),
    [
        (queues_behind_nothing, "not_found"),
        (folds_and_queues_behind_nothing, "not_found"),
        (queues_a_taken_id, "conflict"),
    ],
    ids=str,
)
async def test_what_cannot_be_written_is_a_permanent_failure(make_app: MakeApp, flow: object, code: str) -> None:
    app = make_app(*ALL)
    async with app.running():
        await app.enqueue(value(1), id="taken")
        handle = await app.enqueue(flow().using(max_attempts=5))  # type: ignore[operator] # both take nothing
        with pytest.raises(JobFailed, match="what should follow was refused"):
            await handle.result(timeout=10)
        info = await app.get(handle.id)
        assert (info.state, info.attempt) == (State.FAILED, 1)
        assert info.error is not None
        assert info.error.code == code
        assert [entry.rev for entry in await app.history(handle.id)] == [1, 2, 3]


async def test_a_chain_is_awaited_listed_and_deleted(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        handle = await app.enqueue(countdown(3))
        assert await handle.chain(timeout=10) == "lift-off"
        assert await handle.result(timeout=10) == "lift-off"
        assert await handle.group(timeout=10) == "lift-off"
        links = await app.chain(handle.id)
        assert [(link.chain_index, link.state) for link in links] == [(at, State.COMPLETED) for at in range(4)]
        assert [link.id for link in await app.chain(links[-1].id)] == [link.id for link in links]
        after = await app.enqueue(total(), depends_on=[await app.enqueue(value(2)), await app.enqueue(value(3))])
        assert await after.result(timeout=10) == 5
        await app.delete_chain(links[2].id)
        assert await app.states([link.id for link in links]) == {}
        with pytest.raises(NotFound):
            await app.chain(handle.id)


async def test_a_chain_others_wait_for_is_deleted_only_with_them(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app:
        handle = await app.enqueue(countdown(0))
        other = await app.enqueue(total(), depends_on=Chain(handle))
        third = await app.enqueue(total(), depends_on=other, on_unsatisfied="run")
        with pytest.raises(Conflict, match=handle.id):
            await app.delete_chain(handle.id)
        async with app.worker(types=[countdown]):
            await handle.result(timeout=10)
        with pytest.raises(Conflict, match=f"{other.id}.*{third.id}"):
            await app.delete_chain(handle.id)
        await app.delete_chain(handle.id, cascade=True)
        assert await app.states([handle.id, other.id, third.id]) == {}


async def test_what_runs_is_never_deleted(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        handle = await app.enqueue(held())
        await _until(app, handle.id, State.RUNNING)
        with pytest.raises(Conflict, match="runs"):
            await app.delete_chain(handle.id, cascade=True)
        gates[0].set()
        await handle.result(timeout=10)


async def test_results_of_parents_come_in_order(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        parents = [value(1), value(20)]
        child = total().using(depends_on=parents)
        await app.enqueue_many([child, *parents])
        assert await app.handle(child.id, total).result(timeout=10) == 21


async def test_doomed_skipped_and_cancelled_jobs_are_told(make_app: MakeApp) -> None:
    heard: list[Event] = []
    app = make_app(*ALL, on_event=heard.append)
    async with app.running():
        broken = breaks()
        fails = total().using(depends_on=broken)
        cancels = total().using(depends_on=broken, on_unsatisfied="cancel")
        skips = total().using(depends_on=broken, on_unsatisfied="skip")
        runs = endings().using(depends_on=broken, on_unsatisfied="run")
        after = value(7).using(depends_on=skips)
        await app.enqueue_many([fails, cancels, skips, runs, after, broken])
        with pytest.raises(JobFailed, match=broken.id):
            await app.handle(fails.id, total).result(timeout=10)
        with pytest.raises(JobCancelled):
            await app.handle(cancels.id, total).result(timeout=10)
        assert await app.handle(runs.id, endings).result(timeout=10) == ["failed"]
        assert await app.handle(after.id, value).result(timeout=10) == 7
        assert (await app.get(skips.id)).skipped
        for job_id in (fails.id, cancels.id, skips.id, runs.id):
            entries = await app.history(job_id)
            assert [entry.rev for entry in entries] == list(range(1, len(entries) + 1))
    told = {event.job_id: event for event in heard if event.kind not in ("queued", "started")}
    assert (told[fails.id].kind, told[fails.id].will_retry) == ("failed", False)
    assert told[fails.id].error is not None
    assert told[cancels.id].kind == "cancelled"
    assert (told[skips.id].kind, told[skips.id].skipped) == ("succeeded", True)


async def test_a_retry_brings_back_what_it_doomed_only_if_asked(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        broken = await app.enqueue(breaks())
        child = await app.enqueue(total(), depends_on=broken)
        with pytest.raises(JobFailed):
            await child.result(timeout=10)
        await app.retry(broken.id, cascade=True)
        assert await child.result(timeout=10) == 2


async def test_why_names_the_parents(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app:
        parents = [await app.enqueue(value(number)) for number in range(4)]
        child = await app.enqueue(total(), depends_on=parents)
        why = await app.why(child.id)
    assert (why.state, why.cause) == (State.PENDING, "dependencies")
    assert f"4 unfinished dependencies: {parents[0].id}, {parents[1].id}, {parents[2].id}, …" in why.explanation


async def test_a_workflow_is_a_graph(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        first, second = value(1), value(2)
        last = total().using(depends_on=[first, Group(second)])
        await app.enqueue_many([first, second, last], workflow_id="w")
        await app.handle(last.id, total).result(timeout=10)
        flow = await app.workflow("w")
    assert [node.id for node in flow] == [node.id for node in flow.nodes]
    assert (len(flow), flow.states[State.COMPLETED]) == (3, 3)
    assert [(edge.parent, edge.child, edge.kind, edge.ending) for edge in flow.edges] == [
        (first.id, last.id, "job", "completed"),
        (second.id, last.id, "tree", "completed"),
    ]
    assert flow.created_at is not None
    assert flow.finished_at is not None
    assert flow.finished_at >= flow.created_at


async def test_a_large_fan_out_is_gone_on_with_by_any_worker(make_app: MakeApp) -> None:
    """safe-9: one transaction resolves a thousand edges, the rest follows at once."""
    app = make_app(*ALL)
    async with app.running(concurrency=50):
        handle = await app.enqueue(fan_out(2500))
        await handle.result(timeout=20)
        gates[0].set()
        async with asyncio.timeout(40):
            await handle.group(raise_on_failure=True)
        group = await app.group(handle.id, nodes_max=0)
    assert (group.completed, group.open, list(group.nodes)) == (2502, 0, [])


async def _until(app: App, job_id: str, state: State) -> None:
    async with asyncio.timeout(10):
        while (await app.get(job_id)).state is not state:
            await asyncio.sleep(0.01)
