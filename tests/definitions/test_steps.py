"""W6: durable steps, sleeping, waiting for signals: what is kept, what is replayed, what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.handler_exceptions import Nondeterministic, Suspend
from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.results.classify import classify
from ropewalk.definitions.results.returned import outcome_of_return
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.outcome import Aborted, Completed, Errored, Outcome, Suspended
from ropewalk.domain.time import SECOND
from ropewalk.domain.workflow.completion import StepRecord, Suspension
from ropewalk.errors import Abort, InvalidInput, LimitExceeded, Retry, WaitTimeout
from tests.apps import MakeApp
from tests.definitions.attempts import NOW, attempt_of
from tests.definitions.ports import FakeAttempt


@job
async def flow(): ...  # type: ignore[no-untyped-def]


@dataclass
class Point:
    x: int


calls: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls_yet() -> None:
    calls.clear()


async def double(number: int, *, plus: int = 0) -> int:
    calls.append("double")
    return number * 2 + plus


async def point(x: int) -> Point:
    calls.append("point")
    return Point(x)


async def undeclared(value):  # type: ignore[no-untyped-def]
    calls.append("undeclared")
    return value


async def breaks() -> int:
    calls.append("breaks")
    raise OSError("no")


def halve(number: int) -> int:
    calls.append("halve")
    return number // 2


@pytest.fixture
def port() -> FakeAttempt:
    return attempt_of(flow)


Handler = Callable[[Context], Awaitable[object]]


async def run(port: FakeAttempt, handler: Handler) -> Outcome:
    """One attempt; what a store would write at its end is written."""
    ctx = Context(port)
    try:
        outcome = outcome_of_return(flow, ctx, await handler(ctx), port.bounds, strict=True)
    except BaseException as error:
        outcome = classify(error, flow, lambda *_: None, attempt=1, app_decide=None)
    if isinstance(outcome, Suspended):
        port.keep(outcome.suspension.step_at(port.clock))
    return outcome


def why(outcome: Outcome) -> str:
    assert isinstance(outcome, Aborted), outcome
    assert outcome.error.category is Category.PERMANENT
    assert outcome.error.code == "nondeterministic"
    return outcome.error.message


# ── functions ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_step_runs_once(port: FakeAttempt) -> None:
    async def handler(ctx: Context) -> list[object]:
        return [
            await ctx.step("twice", double, 3, plus=1),
            (await ctx.step("point", point, x=5)).x,
            await ctx.step("anything", undeclared, {1, 2}),
            await ctx.step("none", undeclared, None),
        ]

    expected = Completed(b'[7,5,{"$rw":"set","v":[1,2]},null]')
    assert await run(port, handler) == expected
    assert port.stored[0] == StepRecord(position=0, name="twice", kind="step", value=b"7")
    assert [(each.name, each.finished) for each in port.stored.values()] == [
        ("twice", True),
        ("point", True),
        ("anything", True),
        ("none", True),
    ]
    assert port.stored[3].value is None
    assert await run(port, handler) == expected
    assert calls == ["double", "point", "undeclared", "undeclared"]
    assert port.said.count(("steps",)) == 2, "loaded once an attempt"


class Halver:
    async def __call__(self, number: int) -> int:
        return halve(number)


@pytest.mark.parametrize(
    ("fn", "threads"),
    [
        (halve, 1),
        (partial(halve, number=8), 1),
        (lambda *_: Halver()(8), 1),  # no coroutine function, though it makes a coroutine
        (Halver(), 0),
        (partial(Halver(), 8), 0),
    ],
)
async def test_a_plain_function_runs_in_a_thread(port: FakeAttempt, fn: Any, threads: int) -> None:
    async def handler(ctx: Context) -> int:
        return await (ctx.step("half", fn) if isinstance(fn, partial) else ctx.step("half", fn, 8))

    for _ in range(2):
        assert await run(port, handler) == Completed(b"4")
    assert calls == ["halve"], "the effect happens once"
    assert port.said.count(("in_thread",)) == threads


async def test_a_step_in_a_step_that_runs_in_a_thread(port: FakeAttempt) -> None:
    ctx = Context(port)
    with pytest.raises(Abort, match="step 'inner' is inside step 'outer'"):
        await ctx.step("outer", lambda: ctx.sync.step("inner", halve, 2))


async def test_a_replayed_value_has_its_declared_type(port: FakeAttempt) -> None:
    seen: list[object] = []

    async def handler(ctx: Context) -> None:
        seen.append(await ctx.step("point", partial(point, 3)))

    await run(port, handler)
    await run(port, handler)
    assert seen == [Point(3), Point(3)]
    assert calls == ["point"]


async def test_only_success_is_kept(port: FakeAttempt) -> None:
    async def handler(ctx: Context) -> None:
        await ctx.step("breaks", breaks)

    for _ in range(2):
        outcome = await run(port, handler)
        assert not isinstance(outcome, Completed)
    assert calls == ["breaks", "breaks"]
    assert port.stored == {}


async def test_a_handler_without_steps_asks_for_none(port: FakeAttempt) -> None:
    async def handler(ctx: Context) -> int:
        return 3

    assert await run(port, handler) == Completed(b"3")
    assert port.said == []


async def test_side_by_side(port: FakeAttempt) -> None:
    gate = asyncio.Event()

    async def slow() -> int:
        await gate.wait()
        return 1

    async def quick() -> int:
        gate.set()
        return 2

    async def handler(ctx: Context) -> list[int]:
        return [*await asyncio.gather(ctx.step("slow", slow), ctx.step("quick", quick))]

    async with asyncio.timeout(5):
        assert await run(port, handler) == Completed(b"[1,2]")
    assert {each.position: each.name for each in port.stored.values()} == {0: "slow", 1: "quick"}
    del port.stored[0]  # as if the worker had died between the two
    async with asyncio.timeout(5):
        assert await run(port, handler) == Completed(b"[1,2]")
    assert sorted(port.stored) == [0, 1]


def test_the_sync_face(port: FakeAttempt) -> None:
    for _ in range(2):
        ctx = Context(port)
        assert ctx.sync.step("half", halve, 8) == 4
        assert ctx.sync.step("half of that", halve, number=4) == 2
        assert outcome_of_return(flow, ctx, None, port.bounds, strict=True) == Completed(None)
    assert calls == ["halve", "halve"]


def test_the_sync_face_waits_too(port: FakeAttempt) -> None:
    with pytest.raises(Suspend):
        Context(port).sync.sleep(3)
    port.signals = [("go", 3)]
    assert Context(attempt := port).sync.wait_for("go") == 3
    assert [each.name for each in attempt.stored.values()] == ["wait_for-go-1"]


# ── wrong steps ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_another_step_at_its_place(port: FakeAttempt) -> None:
    async def before(ctx: Context) -> None:
        await ctx.step("a", double, 1)
        await ctx.step("b", double, 2)

    async def after(ctx: Context) -> None:
        await ctx.step("b", double, 2)
        await ctx.step("a", double, 1)

    await run(port, before)
    assert "step 1 is 'b' now and was 'a' before" in why(await run(port, after))


async def test_another_kind_at_its_place(port: FakeAttempt) -> None:
    async def before(ctx: Context) -> None:
        await ctx.sleep(1)

    async def after(ctx: Context) -> None:
        await ctx.step("sleep-1", double, 1)

    await run(port, before)
    assert "step 1 is 'sleep-1' now" in why(await run(port, after))


@pytest.mark.parametrize("kept", [0, 1])
async def test_missing_steps(port: FakeAttempt, kept: int) -> None:
    async def handler(ctx: Context, steps: int) -> None:
        for number in range(steps):
            await ctx.step(f"s{number}", double, number)

    assert await run(port, partial(handler, steps=3)) == Completed(None)
    told = why(await run(port, partial(handler, steps=kept)))
    assert "without" in told and ("any of its stored steps" in told if kept == 0 else "'s1', 's2'" in told)


async def test_a_fault_that_is_caught_is_a_fault(port: FakeAttempt) -> None:
    port.keep(StepRecord(position=0, name="other", kind="step"))

    async def handler(ctx: Context) -> int:
        with pytest.raises(Nondeterministic):
            await ctx.step("mine", double, 1)
        return 3

    assert "'mine' now and was 'other' before" in why(await run(port, handler))


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda ctx: ctx.step("", double, 1), "a step's name is empty"),
        (lambda ctx: ctx.step(3, double, 1), "a step's name=3 must be a string"),
        (lambda ctx: ctx.step("x" * 257, double, 1), "a step's name has 257 characters"),
        (lambda ctx: ctx.step("call", double(1)), "give the function itself and then its arguments"),
        (lambda ctx: ctx.step("odd", undeclared, object()), "step 'odd': its value does not fit"),
        (lambda ctx: ctx.step("big", undeclared, "x" * 60), "is 62 bytes, over result_bytes_max=61"),
    ],
)
async def test_steps_that_cannot_be(port: FakeAttempt, use: Callable[[Context], Awaitable[object]], told: str) -> None:
    port.allowed = Bounds(result_bytes_max=61)
    ctx = Context(port)
    await ctx.step("taken", undeclared, "x" * 59)
    with pytest.raises(Abort) as raised:
        await use(ctx)
    assert told in str(raised.value)
    assert isinstance(raised.value.cause, InvalidInput)
    assert list(port.stored) == [0]


async def test_two_steps_of_one_name(port: FakeAttempt) -> None:
    async def handler(ctx: Context) -> None:
        await ctx.step("same", double, 1)
        with suppress(Nondeterministic):
            await ctx.step("same", double, 2)

    assert "two steps are named 'same'" in why(await run(port, handler))
    assert calls == ["double"]


@pytest.mark.parametrize(
    ("fn", "told"),
    [
        (double, "double is an async function"),
        (partial(double, 1), "is an async function"),
        (lambda: double(1), "<lambda> returned a coroutine"),
        (3, "3 is no function"),
    ],
)
def test_what_the_sync_face_cannot_call(port: FakeAttempt, fn: Any, told: str) -> None:
    with pytest.raises(Abort, match=told):
        Context(port).sync.step("odd", fn)
    assert calls == []
    assert port.stored == {}


async def test_a_value_that_does_not_fit_its_annotation(port: FakeAttempt) -> None:
    async def lies() -> int:
        return "text"  # type: ignore[return-value] # that is the point

    with pytest.raises(Abort, match="step 'lies': its value does not fit: expected `int`, got `str`"):
        await Context(port).step("lies", lies)
    port.keep(StepRecord(position=0, name="lies", kind="step", value=b'"text"'))
    with pytest.raises(Abort, match="its stored value no longer fits"):
        await Context(port).step("lies", lies)


async def test_both_sides_of_the_bound_on_steps(port: FakeAttempt) -> None:
    port.allowed = Bounds(steps_max=2)
    ctx = Context(port)
    await ctx.step("a", double, 1)
    await ctx.step("b", double, 1)
    with pytest.raises(Abort, match="step 'c' is over steps_max=2") as raised:
        await ctx.step("c", double, 1)
    assert isinstance(raised.value.cause, LimitExceeded)


async def test_a_step_in_a_step(port: FakeAttempt) -> None:
    ctx = Context(port)

    async def outer() -> None:
        await ctx.step("inner", double, 1)

    async def sleeper() -> None:
        await ctx.sleep(1)

    with pytest.raises(Abort, match="step 'inner' is inside step 'outer'"):
        await ctx.step("outer", outer)
    with pytest.raises(Abort, match="step 'sleep-1' is inside step 'sleeper'"):
        await ctx.step("sleeper", sleeper)
    assert await ctx.step("after", double, 1) == 2


def test_a_step_in_a_step_of_the_sync_face(port: FakeAttempt) -> None:
    ctx = Context(port)
    for number, inner in enumerate((lambda: ctx.sync.step("inner", halve, 2), lambda: ctx.sync.sleep(1))):
        with pytest.raises(Abort, match="is inside step"):
            ctx.sync.step(f"outer{number}", inner)


# ── sleeping ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_sleeping(port: FakeAttempt) -> None:
    async def handler(ctx: Context) -> int:
        await ctx.step("before", double, 1)
        await ctx.sleep(60)
        await ctx.sleep(5)
        return 3

    assert await run(port, handler) == Suspended(Suspension(position=1, name="sleep-1", span_us=60 * SECOND))
    port.clock += 59 * SECOND  # somebody ran it early: it goes back to sleep until the same moment
    until = NOW + 60 * SECOND
    assert await run(port, handler) == Suspended(
        Suspension(position=1, name="sleep-1", span_us=60 * SECOND, until=until)
    )
    assert port.stored[1].until == until
    port.clock = until
    assert await run(port, handler) == Suspended(Suspension(position=2, name="sleep-2", span_us=5 * SECOND))
    port.clock += 5 * SECOND
    assert await run(port, handler) == Completed(b"3")
    assert calls == ["double"]


async def test_a_suspension_passes_through_the_handlers_nets(port: FakeAttempt) -> None:
    async def handler(ctx: Context) -> None:
        try:
            await ctx.sleep(1)
        except Exception:
            calls.append("caught")

    assert isinstance(await run(port, handler), Suspended)
    assert calls == []


async def test_a_suspension_out_of_a_task_group(port: FakeAttempt) -> None:
    async def handler(ctx: Context) -> int:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.sleep(1))
            group.create_task(asyncio.Event().wait())
        return 3

    async def failing(ctx: Context) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.sleep(1))
            group.create_task(breaks())

    assert await run(port, handler) == Suspended(Suspension(position=0, name="sleep-1", span_us=SECOND))
    assert isinstance(await run(attempt_of(flow), failing), Errored)


async def test_a_suspension_that_is_swallowed_still_counts(port: FakeAttempt) -> None:
    async def handler(ctx: Context) -> int:
        try:
            await ctx.sleep(1)
        except BaseException:
            return 1
        return 2

    assert await run(port, handler) == Suspended(Suspension(position=0, name="sleep-1", span_us=SECOND))
    port.clock += SECOND
    assert await run(port, handler) == Completed(b"2")


@pytest.mark.parametrize("wrong", ["3", None, float("nan"), float("-inf")])
async def test_nonsense_is_no_time(port: FakeAttempt, wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="seconds="):
        await Context(port).sleep(wrong)
    with pytest.raises(InvalidInput, match="name=3 must be a string"):
        await Context(port).wait_for(3)  # type: ignore[arg-type]


# ── signals ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def approval(ctx: Context) -> object:
    return await ctx.wait_for("approval", timeout=10)


async def test_a_signal_that_is_there(port: FakeAttempt) -> None:
    port.signals = [("other", 1), ("approval", {"by": "me"}), ("approval", 2)]
    assert await run(port, approval) == Completed(b'{"by":"me"}')
    assert port.signals == [("other", 1), ("approval", 2)]
    assert await run(port, approval) == Completed(b'{"by":"me"}'), "replayed, not taken again"
    assert port.signals == [("other", 1), ("approval", 2)]


async def test_a_signal_that_comes_later(port: FakeAttempt) -> None:
    waiting = Suspension(position=0, name="wait_for-approval-1", signal="approval", span_us=10 * SECOND)
    assert await run(port, approval) == Suspended(waiting)
    port.signals = [("approval", None)]
    assert await run(port, approval) == Completed(None)
    assert port.stored[0] == StepRecord(position=0, name="wait_for-approval-1", kind="signal")
    assert await run(port, approval) == Completed(None), "None is a value"


async def test_a_wait_that_is_interrupted_keeps_its_end(port: FakeAttempt) -> None:
    await run(port, approval)
    port.clock += 4 * SECOND
    until = NOW + 10 * SECOND
    again = Suspension(position=0, name="wait_for-approval-1", signal="approval", span_us=10 * SECOND, until=until)
    assert await run(port, approval) == Suspended(again)
    assert port.stored[0].until == until


async def test_a_signal_that_does_not_come(port: FakeAttempt) -> None:
    async def handler(ctx: Context) -> str:
        try:
            await ctx.wait_for("approval", timeout=10)
        except WaitTimeout:
            await ctx.step("give up", double, 1)
            return "gave up"
        return "approved"

    await run(port, handler)
    port.clock += 10 * SECOND
    assert await run(port, handler) == Completed(b'"gave up"')
    port.signals = [("approval", True)]  # too late: what was decided stays decided
    assert await run(port, handler) == Completed(b'"gave up"')
    assert calls == ["double"]


async def test_a_signal_at_the_last_moment(port: FakeAttempt) -> None:
    await run(port, approval)
    port.clock += 20 * SECOND
    port.signals = [("approval", 3)]
    assert await run(port, approval) == Completed(b"3")


async def test_waiting_without_an_end(port: FakeAttempt) -> None:
    async def handler(ctx: Context) -> list[object]:
        return [await ctx.wait_for("a"), await ctx.wait_for("b"), await ctx.wait_for("a")]

    assert await run(port, handler) == Suspended(Suspension(position=0, name="wait_for-a-1", signal="a"))
    port.clock += 10**9 * SECOND
    assert await run(port, handler) == Suspended(Suspension(position=0, name="wait_for-a-1", signal="a"))
    port.signals = [("a", 1), ("b", 2), ("a", 3)]
    assert await run(port, handler) == Completed(b"[1,2,3]")
    assert [each.name for each in port.stored.values()] == ["wait_for-a-1", "wait_for-b-1", "wait_for-a-2"]


# ── faults that other exceptions hide ───────────────────────────────────────────────────────────────────────────────


@job(max_attempts=3)
async def twice_in_a_group(ctx: Context) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.step("a", double, 1))
        group.create_task(ctx.step("a", double, 2))


@job(max_attempts=3)
async def twice_and_hidden(ctx: Context) -> None:
    try:
        await ctx.step("a", double, 1)
        await ctx.step("a", double, 2)
    except Exception as error:
        raise ValueError("something else") from error


@job(max_attempts=3)
def twice_in_a_thread(ctx: Context) -> None:
    try:
        ctx.sync.step("a", halve, 1)
        ctx.sync.step("a", halve, 2)
    except Exception:
        raise ValueError("something else") from None


@job(max_attempts=3, executor="process")
def twice_in_a_process(ctx: Context) -> None:
    try:
        ctx.sync.step("a", halve, 1)
        ctx.sync.step("a", halve, 2)
    except Exception:
        raise ValueError("something else") from None


@job(max_attempts=3)
async def twice_and_retried(ctx: Context) -> None:
    try:
        await ctx.step("a", double, 1)
        await ctx.step("a", double, 2)
    except Exception:
        raise Retry("again", after=0) from None


TWICE = (twice_in_a_group, twice_and_hidden, twice_in_a_thread, twice_in_a_process, twice_and_retried)


@pytest.mark.parametrize("of_type", TWICE, ids=[each.name for each in TWICE])
async def test_two_steps_of_one_name_always_fail_as_nondeterministic(make_app: MakeApp, of_type: Any) -> None:
    """Whatever the handler, or a TaskGroup, makes of the error: it would be the same in every attempt."""
    app = make_app(of_type)
    async with app.running():
        handle = await app.enqueue(of_type())
        info = await app.wait(handle.id, timeout=20)
    assert (info.state, info.attempt) == ("failed", 1)
    assert info.error is not None and info.error.code == "nondeterministic"
    assert info.error.message == "two steps are named 'a': give each its own name"
