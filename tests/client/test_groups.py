"""Groups: values decoded by the type that produced them, counts, failures, cancelling, opening again (safe-10)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from ropewalk import (
    App,
    Bounds,
    Conflict,
    Context,
    Group,
    InvalidInput,
    JobFailed,
    NotFound,
    Result,
    State,
    WaitTimeout,
    job,
)
from ropewalk.errors import GroupFailed
from ropewalk.observe.events import Event
from tests.apps import MakeApp

gates: list[asyncio.Event] = []


@pytest.fixture(autouse=True)
def _closed_gate() -> None:
    gates[:] = [asyncio.Event()]


@dataclass
class Point:
    x: int


@job
async def point(ctx: Context, x: int) -> Result[Point, list[Point]]:
    return ctx.result(Point(x), append="list")


@job
async def points(ctx: Context, count: int) -> Result[None, list[Point]]:
    return ctx.queue(*(point(x) for x in range(count)))


@job
async def add(ctx: Context, number: int) -> Result[int, int]:
    return ctx.result(number, append="sum")


@job
async def counted(ctx: Context, number: int) -> Result[int, int]:
    return ctx.result(number, append="count")


@job
async def merged(ctx: Context, name: str, value: int) -> Result[dict[str, int], dict[str, int]]:
    return ctx.result({name: value}, append="merge")


@job
async def queue_these(ctx: Context, kind: str) -> Result[None, object]:
    match kind:
        case "sum":
            return ctx.queue(*(add(each) for each in (1, 2, 3)))
        case "count":
            return ctx.queue(*(counted(each) for each in (1, 2, 3)))
        case "merge":
            return ctx.queue(merged("a", 1), merged("b", 2))
        case "mixed":
            return ctx.queue(add(1), counted(2))
        case _:
            raise AssertionError(kind)


@job(max_attempts=1)
async def breaks_in_run_one(ctx: Context) -> str:
    if ctx.run == 1:
        raise ValueError("broken")
    return "mended"


@job
async def tries(ctx: Context) -> Result[None, str]:
    return ctx.queue(breaks_in_run_one())


@job
async def plain(value: int) -> Point:
    return Point(value)


@job
async def waits_at_the_gate() -> str:
    await gates[0].wait()
    return "through"


@job
async def spawns_late(ctx: Context) -> Result[None, Point]:
    await gates[0].wait()
    return ctx.queue(plain(1), plain(2))


def so_far(existing: list[int] | None, value: int) -> list[int]:
    return sorted([*(existing or []), value])


@job
async def folded(ctx: Context, number: int) -> Result[int, list[int]]:
    return ctx.result(number, append=so_far)


@job
async def folds(ctx: Context, count: int) -> Result[None, list[int]]:
    return ctx.queue(*(folded(number) for number in range(count)))


def refuses(existing: object, value: int) -> int:
    raise ValueError(f"cannot fold {value} into {existing}")


@job(max_attempts=1)
async def folds_badly(ctx: Context) -> Result[int, int]:
    return ctx.result(1, append=refuses)


def refuses_zero(existing: int | None, value: int) -> int:
    if value == 0:
        raise ValueError("zero")
    return (existing or 0) + value


@job
async def one_in_three_folds(ctx: Context, number: int) -> Result[int, int]:
    return ctx.result(number, append=refuses_zero)


@job
async def three_fold(ctx: Context) -> Result[None, int]:
    return ctx.queue(*(one_in_three_folds(number) for number in range(3)))


@job
async def adds_much(ctx: Context) -> Result[float, float]:
    return ctx.result(1e308, append="sum")


@job
async def adds_much_thrice(ctx: Context) -> Result[None, float]:
    return ctx.queue(adds_much(), adds_much(), adds_much())


async def test_each_value_is_decoded_by_the_type_that_produced_it(make_app: MakeApp) -> None:
    app = make_app(point, points)
    async with app.running():
        value = await app.enqueue(points(3)).group(timeout=10)
    assert sorted(each.x for each in value) == [0, 1, 2]
    assert all(isinstance(each, Point) for each in value)


@pytest.mark.parametrize(("kind", "value"), [("sum", 6), ("count", 3), ("merge", {"a": 1, "b": 2})])
async def test_folds(make_app: MakeApp, kind: str, value: object) -> None:
    app = make_app(add, counted, merged, queue_these)
    async with app.running():
        assert await app.enqueue(queue_these(kind)).group(timeout=10) == value


async def test_a_function_is_folded_exactly_however_many_workers_do_it(make_app: MakeApp) -> None:
    app = make_app(folded, folds)
    async with app, app.worker(concurrency=20), app.worker(concurrency=20):
        assert await app.enqueue(folds(40)).group(timeout=30) == list(range(40))


async def test_a_fold_that_raises_fails_the_group_and_not_the_job(make_app: MakeApp) -> None:
    """The handler has run: it must not run again for what became of its value."""
    reported: list[tuple[str, str]] = []
    app = make_app(folds_badly, plain, on_error=lambda error, phase: reported.append((phase, str(error))))
    async with app.running():
        handle = await app.enqueue(folds_badly())
        late = await app.enqueue(plain(5), depends_on=Group(handle))
        assert await handle.result(timeout=10) == 1
        told = "append=refuses of folds_badly raised ValueError: cannot fold 1 into None"
        with pytest.raises(GroupFailed, match=f"its value cannot be told: {told}"):
            await handle.group(timeout=10)
        group = await app.group(handle.id)
        assert (group.conflict, group.completed, group.failed) == (told, 1, 0)
        with pytest.raises(JobFailed, match="depend"):
            await late.result(timeout=10)
        assert (await handle.status()).attempt == 1
    assert reported == [("append", "cannot fold 1 into None")]


async def test_after_a_fold_that_raised_the_others_complete_and_the_value_stays_lost(
    make_app: MakeApp,
) -> None:
    app = make_app(one_in_three_folds, three_fold)
    async with app.running():
        handle = await app.enqueue(three_fold())
        with pytest.raises(GroupFailed, match="zero"):
            await handle.group(timeout=10)
        group = await app.group(handle.id)
        assert (group.completed, group.failed) == (4, 0)


async def test_a_group_value_that_is_too_large_fails_the_group(make_app: MakeApp) -> None:
    app = make_app(folded, folds, bounds=Bounds(result_bytes_max=5))
    async with app.running():
        handle = await app.enqueue(folds(4))
        with pytest.raises(GroupFailed, match=r"over result_bytes_max=5"):
            await handle.group(timeout=10)
        assert (await app.group(handle.id)).completed == 5


async def test_a_sum_over_the_largest_float_fails_the_group(make_app: MakeApp) -> None:
    app = make_app(adds_much, adds_much_thrice)
    async with app.running():
        handle = await app.enqueue(adds_much_thrice())
        with pytest.raises(GroupFailed, match="over the largest float"):
            await handle.group(timeout=10)
        assert (await app.group(handle.id)).completed == 4


async def test_contributions_that_fold_differently_say_so(make_app: MakeApp) -> None:
    app = make_app(add, counted, merged, queue_these)
    async with app.running():
        handle = await app.enqueue(queue_these("mixed"))
        with pytest.raises(GroupFailed, match=r"append='sum'.*append='count'|append='count'.*append='sum'"):
            await handle.group(timeout=10)
        assert (await app.group(handle.group_id)).conflict is not None


async def test_a_group_without_more_than_its_root_is_the_roots_own_result(make_app: MakeApp) -> None:
    app = make_app(plain)
    async with app.running():
        handle = await app.enqueue(plain(5))
        assert await handle.group(timeout=10) == Point(5)
        group = await app.group(handle.group_id)
    assert (group.state, group.open, group.completed, group.failed, group.value) == ("closed", 0, 1, 0, Point(5))
    assert [node.id for node in group.nodes] == [handle.id]


async def test_failures_raise_only_if_asked_and_a_retry_opens_the_group_again(make_app: MakeApp) -> None:
    app = make_app(breaks_in_run_one, tries)
    async with app.running():
        handle = await app.enqueue(tries())
        assert await handle.group(timeout=10) is None
        with pytest.raises(GroupFailed, match="1 of 2 jobs failed") as caught:
            await handle.group(timeout=10, raise_on_failure=True)
        assert (caught.value.completed, caught.value.failed, caught.value.cancelled) == (1, 1, 0)
        first = await app.group(handle.group_id)
        assert (first.state, first.generation, first.closed_at is not None) == ("closed", 1, True)
        [failed] = [node for node in first.nodes if node.state is State.DEAD_LETTER]
        await app.retry(failed.id)
        assert await handle.group(timeout=10, raise_on_failure=True) == "mended"
        assert (await app.group(handle.group_id)).generation == 2


async def test_waiting_for_a_group_ends_in_time_and_says_what_is_missing(make_app: MakeApp) -> None:
    app = make_app(waits_at_the_gate)
    async with app:
        handle = await app.enqueue(waits_at_the_gate())
        with pytest.raises(WaitTimeout, match=f"group {handle.id}"):
            await handle.group(timeout=0.05)
        with pytest.raises(NotFound):
            await app.handle("nope", waits_at_the_gate).group(timeout=1)
        assert (await app.group(handle.id)).state == "open"


async def test_a_childs_handle_waits_for_the_group_it_is_in(make_app: MakeApp) -> None:
    app = make_app(add, counted, merged, queue_these)
    async with app.running():
        handle = await app.enqueue(queue_these("sum"))
        await handle.group(timeout=10)
        child = next(node for node in (await app.group(handle.id)).nodes if node.type == "add")
        assert await app.handle(child.id, add).group(timeout=10) == 6
        assert (await app.group(child.id)).id == handle.id
        with pytest.raises(InvalidInput, match=handle.id):
            await app.cancel_group(child.id)


async def test_a_cancelled_group_takes_what_waits_runs_and_comes_later(make_app: MakeApp) -> None:
    app = make_app(spawns_late, plain)
    async with app.running():
        handle = await app.enqueue(spawns_late())
        await _until(app, handle.id, State.RUNNING)
        answer = await app.cancel_group(handle.id, reason="enough")
        assert (answer.requested, answer.done) == (1, 1)
        gates[0].set()
        with pytest.raises(GroupFailed, match="2 were cancelled"):
            await handle.group(timeout=10, raise_on_failure=True)
        group = await app.group(handle.id)
    assert [node.state for node in group.nodes] == [State.COMPLETED, State.CANCELLED, State.CANCELLED]
    with pytest.raises(NotFound):
        await app.cancel_group("nope")


async def test_closing_is_an_event_of_the_root(make_app: MakeApp) -> None:
    heard: list[Event] = []
    closed = asyncio.Event()

    def listen(event: Event) -> None:
        heard.append(event)
        if event.kind == "group_closed":
            closed.set()

    app = make_app(add, counted, merged, queue_these, on_event=listen)
    async with app.running():
        handle = await app.tenant("acme").enqueue(queue_these("sum"))
        await handle.group(timeout=10)
        await asyncio.wait_for(closed.wait(), 5)
    [event] = [each for each in heard if each.kind == "group_closed"]
    assert (event.job_id, event.type, event.tenant, event.group_id) == (handle.id, "queue_these", "acme", handle.id)
    assert sum(each.kind == "queued" for each in heard) == 4


def test_blocking_code_waits_for_groups_too(new_app: MakeApp) -> None:
    app = new_app(add, counted, merged, queue_these)

    async def serve() -> None:
        async with app.running():
            handle = await asyncio.to_thread(app.sync.enqueue, queue_these("sum"))
            assert await asyncio.to_thread(handle.group, 10) == 6
            assert (await asyncio.to_thread(app.sync.group, handle.id)).completed == 4

    asyncio.run(serve())


async def test_a_job_others_need_is_not_deleted(make_app: MakeApp) -> None:
    app = make_app(plain, waits_at_the_gate)
    async with app.running():
        handle = await app.enqueue(plain(1))
        await handle.result(timeout=10)
        other = await app.enqueue(waits_at_the_gate(), depends_on=handle)
        with pytest.raises(Conflict, match=other.id):
            await app.delete(handle.id)
        assert (await app.delete_many([handle.id])).skipped == 1
        gates[0].set()
        await other.result(timeout=10)
        await app.delete(handle.id)
        assert await app.states([handle.id]) == {}


async def _until(app: App, job_id: str, state: State) -> None:
    async with asyncio.timeout(10):
        while (await app.get(job_id)).state is not state:
            await asyncio.sleep(0.01)


@job
async def after_the_group(ctx: Context) -> list[object]:
    return [each.result for each in ctx.dependencies]


@job
async def points_after_the_group(ctx: Context) -> Point:
    [group] = ctx.dependencies
    return max(group.group_of(points), key=lambda each: each.x)


@pytest.mark.parametrize(("kind", "value"), [("sum", 6), ("count", 3), ("merge", {"a": 1, "b": 2})])
async def test_a_job_that_depends_on_a_group_is_given_its_value(make_app: MakeApp, kind: str, value: object) -> None:
    app = make_app(add, counted, merged, queue_these, after_the_group)
    async with app.running():
        root = queue_these(kind)
        late = after_the_group().using(depends_on=[Group(root), root])
        await app.enqueue_many([root, late])
        assert await app.handle(late.id, after_the_group).result(timeout=10) == [value, None]
        assert await app.handle(root.id, queue_these).group() == value


async def test_the_value_of_a_group_is_decoded_by_the_types_that_produced_it(make_app: MakeApp) -> None:
    app = make_app(point, points, points_after_the_group)
    async with app.running():
        root = await app.enqueue(points(3))
        late = await app.enqueue(points_after_the_group(), depends_on=Group(root))
        assert await late.result(timeout=10) == Point(2)
        alone = await app.enqueue(point(7))
        after = await app.enqueue(points_after_the_group().using(max_attempts=1), depends_on=Group(alone))
        with pytest.raises(JobFailed, match=r"job_type='points': dependency .* is a 'point'"):
            await after.result(timeout=10)
