"""Calls of the context that have begun, and have not ended when the handler returns, raises or suspends itself."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ropewalk import App, Backoff, CallNext, Context, Filter, Job, JobFailed, State, job
from tests.apps import MakeApp

AT_ONCE = Backoff.constant(0)
ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@job
async def child(n: int) -> None: ...


async def charge(order: str) -> str:
    ran.append(order)
    await asyncio.sleep(0.05)
    return f"receipt-{order}"


def charge_in_a_thread(order: str) -> str:
    ran.append(order)
    time.sleep(0.05)
    return f"receipt-{order}"


# ── a step beside a wait ────────────────────────────────────────────────────────────────────────────────────────

FUNCTIONS: dict[str, Callable[[str], Any]] = {"async": charge, "thread": charge_in_a_thread}


@job(max_attempts=1)
async def gathers(ctx: Context, function: str) -> list[Any]:
    return list(await asyncio.gather(ctx.step("charge", FUNCTIONS[function], "7"), ctx.wait_for("approved")))


@job(max_attempts=1)
async def waits_first(ctx: Context, function: str) -> list[Any]:
    told, receipt = await asyncio.gather(ctx.wait_for("approved"), ctx.step("charge", FUNCTIONS[function], "7"))
    return [receipt, told]


@job(max_attempts=1)
async def groups(ctx: Context, function: str) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        step = group.create_task(ctx.step("charge", FUNCTIONS[function], "7"))
        wait = group.create_task(ctx.wait_for("approved"))
    return [step.result(), wait.result()]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("kind", [gathers, waits_first, groups])
async def test_a_step_beside_a_wait_runs_once(make_app: MakeApp, kind: Any, function: str) -> None:
    await runs_the_step_once(make_app(kind), kind(function))


@job(max_attempts=1)
async def naps(ctx: Context) -> list[Any]:
    return list(await asyncio.gather(ctx.step("charge", charge, "7"), ctx.sleep(0.02)))


async def test_a_step_beside_a_sleep_runs_once(make_app: MakeApp) -> None:
    app = make_app(naps)
    async with app.running():
        assert await app.enqueue(naps()).result(timeout=30) == ["receipt-7", None]
    assert ran == ["7"]


async def runs_the_step_once(app: App, new: Job[Any, Any]) -> None:
    async with app.running():
        handle = await app.enqueue(new)
        await until(app, handle.id, State.PENDING)
        assert ran == ["7"]
        await app.signal(handle.id, "approved", "yes")
        assert await handle.result(timeout=30) == ["receipt-7", "yes"]
    assert ran == ["7"]


@job(max_attempts=1)
async def spawns_beside_a_wait(ctx: Context) -> Any:
    ids, told = await asyncio.gather(ctx.spawn_many([child(1), child(2)]), ctx.wait_for("approved"))
    return [len(ids), told]


async def test_children_beside_a_wait_are_there_before_the_suspension(make_app: MakeApp) -> None:
    app = make_app(spawns_beside_a_wait, child)
    async with app.running():
        handle = await app.enqueue(spawns_beside_a_wait())
        await until(app, handle.id, State.PENDING)
        assert await app.count(Filter(parent_id=handle.id)) == 2
        await app.signal(handle.id, "approved", "yes")
        assert await handle.result(timeout=30) == [2, "yes"]
        assert await app.count(Filter(parent_id=handle.id)) == 2


@job(max_attempts=1)
async def two_waits(ctx: Context) -> list[Any]:
    return list(await asyncio.gather(ctx.wait_for("a"), ctx.wait_for("b")))


async def test_two_waits_side_by_side_do_not_wait_for_each_other(make_app: MakeApp) -> None:
    app = make_app(two_waits)
    async with app.running():
        handle = await app.enqueue(two_waits())
        await app.signal(handle.id, "b", 2)
        await app.signal(handle.id, "a", 1)
        assert await handle.result(timeout=30) == [1, 2]


# ── the handler returns or raises ───────────────────────────────────────────────────────────────────────────────

tasks: set[asyncio.Task[Any]] = set()


def begin(work: Any) -> None:
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


@job(max_attempts=1)
async def leaves_children(ctx: Context, turns: int) -> str:
    for n in range(20):
        begin(ctx.spawn(child(n)))
    for _ in range(turns):
        await asyncio.sleep(0)
    return "done"


async def goes_on(_ctx: Context, proceed: CallNext) -> object:
    return await proceed()


@pytest.mark.parametrize("turns", [0, 1, 3])
@pytest.mark.parametrize("middlewares", [[], [goes_on]])
async def test_spawns_under_way_end_before_the_job_completes(make_app: MakeApp, turns: int, middlewares: Any) -> None:
    app = make_app(leaves_children, child, middlewares=middlewares)
    async with app.running():
        handle = await app.enqueue(leaves_children(turns))
        assert await handle.result(timeout=30) == "done"
        assert await app.count(Filter(parent_id=handle.id)) == 20


async def returning() -> str:
    return "returned"


async def failing() -> str:
    raise ConnectionError("the first attempt fails")


ENDS: dict[str, Callable[[], Awaitable[str]]] = {"returns": returning, "raises": failing}


@job(max_attempts=2, backoff=AT_ONCE)
async def leaves_a_step(ctx: Context, end: str) -> str:
    begin(ctx.step("charge", charge, f"attempt {ctx.attempt}"))
    await asyncio.sleep(0)
    return await ENDS[end]() if ctx.attempt == 1 else "second"


@pytest.mark.parametrize(("end", "result"), [("returns", "returned"), ("raises", "second")])
async def test_a_step_under_way_is_recorded(make_app: MakeApp, end: str, result: str) -> None:
    app = make_app(leaves_a_step)
    async with app.running():
        assert await app.enqueue(leaves_a_step(end)).result(timeout=30) == result
    assert ran == ["attempt 1"]


def leave_in_a_thread(ctx: Context) -> None:
    begun = threading.Event()

    def step() -> str:
        begun.set()
        return charge_in_a_thread("7")

    threading.Thread(target=lambda: ctx.sync.step("charge", step)).start()
    begun.wait(30)


def fails_beside_a_step(ctx: Context) -> str:
    if ctx.attempt == 1:
        leave_in_a_thread(ctx)
        raise ConnectionError("the first attempt fails")
    return ctx.sync.step("charge", lambda: "again")


@job(max_attempts=2, backoff=AT_ONCE)
def leaves_a_step_in_a_thread(ctx: Context) -> str:
    return fails_beside_a_step(ctx)


@job(executor="process", max_attempts=2, backoff=AT_ONCE)
def leaves_a_step_in_a_process(ctx: Context) -> str:
    return fails_beside_a_step(ctx)


@pytest.mark.parametrize("kind", [leaves_a_step_in_a_thread, leaves_a_step_in_a_process])
async def test_a_step_under_way_in_a_thread_is_recorded(make_app: MakeApp, kind: Any) -> None:
    app = make_app(kind)
    async with app.running():
        assert await app.enqueue(kind()).result(timeout=30) == "receipt-7"


def return_beside_a_step(ctx: Context, file: str) -> int:
    begun = threading.Event()

    def step() -> None:
        begun.set()
        time.sleep(0.05)
        Path(file).write_text("ended", encoding="utf-8")

    threading.Thread(target=lambda: ctx.sync.step("write", step)).start()
    begun.wait(30)
    return 7


@job(max_attempts=1)
def returns_beside_a_thread(ctx: Context, file: str) -> int:
    return return_beside_a_step(ctx, file)


@job(executor="process", max_attempts=1)
def returns_beside_a_thread_in_a_process(ctx: Context, file: str) -> int:
    return return_beside_a_step(ctx, file)


@pytest.mark.parametrize("kind", [returns_beside_a_thread, returns_beside_a_thread_in_a_process])
async def test_a_step_in_another_thread_ends_before_the_job_completes(
    make_app: MakeApp, kind: Any, tmp_path: Path
) -> None:
    file, app = tmp_path / "written", make_app(kind)
    async with app.running():
        assert await app.enqueue(kind(str(file))).result(timeout=30) == 7
        assert file.read_text(encoding="utf-8") == "ended"


@job(max_attempts=1)
async def leaves_what_fails(ctx: Context) -> str:
    begin(ctx.step("charge", failing))
    return "done"


async def test_the_error_of_a_call_under_way_fails_the_attempt(make_app: MakeApp) -> None:
    app = make_app(leaves_what_fails)
    async with app.running():
        with pytest.raises(JobFailed, match="ConnectionError the first attempt fails"):
            await app.enqueue(leaves_what_fails()).result(timeout=30)


async def endless() -> None:
    await asyncio.Event().wait()


@job(max_attempts=1, timeout=0.1)
async def leaves_what_never_ends(ctx: Context) -> None:
    begin(ctx.step("endless", endless))


async def test_the_timeout_of_the_job_bounds_the_wait(make_app: MakeApp) -> None:
    app = make_app(leaves_what_never_ends)
    async with app.running():
        with pytest.raises(JobFailed, match="timeout"):
            await app.enqueue(leaves_what_never_ends()).result(timeout=30)
    for task in list(tasks):
        task.cancel()


async def until(app: App, job_id: str, state: State) -> None:
    async with asyncio.timeout(30):
        while (await app.get(job_id)).state is not state:
            await asyncio.sleep(0.01)
