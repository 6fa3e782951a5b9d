"""R15: middlewares stand around every handler, the first outermost; what they may do, and what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ropewalk import (
    Abort,
    App,
    Backoff,
    Batch,
    CallNext,
    Context,
    Defer,
    DefinitionError,
    JobFailed,
    JobType,
    Result,
    Retry,
    State,
    batch_job,
    current,
    job,
)
from ropewalk.testing import Rehearsal
from tests.apps import MakeApp

log: list[str] = []
gates: list[asyncio.Event] = []
released = threading.Event()
left: list[asyncio.Future[object]] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    log.clear()
    gates[:] = [asyncio.Event()]


class Session:
    def __init__(self, name: str = "session") -> None:
        self.name = name
        self.open = True


class ReadOnly(Session):
    pass


# ── middlewares ─────────────────────────────────────────────────────────────────────────────────────────────


async def outer(ctx: Context, call_next: CallNext) -> object:
    log.append(f"outer in {ctx.type} {ctx.attempt}")
    try:
        return await call_next()
    finally:
        log.append("outer out")


async def with_session(ctx: Context, call_next: CallNext) -> object:
    session = Session()
    ctx.provide(Session, session)
    try:
        return await call_next(ctx)
    finally:
        session.open = False
        log.append("session closed")


class Named:
    """A middleware that is an object."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self, ctx: Context, call_next: CallNext) -> object:
        log.append(f"{self.name} in")
        value = await call_next()
        log.append(f"{self.name} out with {value!r}")
        return value


async def doubled(ctx: Context, call_next: CallNext) -> object:
    value = await call_next()
    return value * 2 if isinstance(value, int) else value


async def refuses(ctx: Context, call_next: CallNext) -> object:
    match ctx.arguments["number"]:
        case 1:
            raise Abort("not that one")
        case 2 if ctx.attempt < 2:
            raise Retry(after=0)
        case 3 if not log:
            log.append("deferred")
            raise Defer(delay=0)
        case 4:
            raise ValueError("an error like any other")
        case 5:
            return "instead"
        case _:
            return await call_next()


async def twice(ctx: Context, call_next: CallNext) -> object:
    await call_next()
    return await call_next()


async def forgetful(ctx: Context, call_next: CallNext) -> object:
    return call_next()


async def hasty(ctx: Context, call_next: CallNext) -> object:
    left.append(asyncio.ensure_future(call_next()))
    await gates[0].wait()
    return "done"


async def foreign(ctx: Context, call_next: CallNext) -> object:
    return await call_next(Context(ctx.port))


# ── handlers ────────────────────────────────────────────────────────────────────────────────────────────────


@job
async def on_the_loop(ctx: Context, number: int) -> int:
    log.append(f"handler has {ctx.resource(Session).open}")
    return number


@job
def in_a_thread(ctx: Context, number: int) -> int:
    log.append(f"handler has {ctx.resource(Session).open}")
    return number


@job(max_attempts=2, backoff=Backoff.constant(0))
async def plain(number: int) -> str:
    return f"handled {number}"


@job(middlewares=[Named("inner")])
async def with_its_own() -> int:
    log.append("handler")
    return 1


@batch_job(size=3, max_wait=0.05)
async def many(batch: Batch[int]) -> Sequence[int]:
    log.append(f"{len(batch)} share {len({id(each.resource(Session)) for each in batch.contexts})}")
    return batch.items


@batch_job(size=3, max_wait=0.05, executor="thread")
def many_in_a_thread(batch: Batch[int]) -> Sequence[int]:
    log.append(f"{len(batch)} share {len({id(each.resource(Session)) for each in batch.contexts})}")
    return batch.items


@job(timeout=0.1, max_attempts=1)
async def never_ends() -> None:
    await asyncio.sleep(60)


@job(timeout=0.1, max_attempts=1)
def stuck_in_a_thread(ctx: Context) -> None:
    session = ctx.resource(Session)
    released.wait(20)
    log.append(f"still open: {session.open}")


@job
async def side_by_side(ctx: Context) -> str:
    await gates[0].wait()
    return ctx.resource(Session).name


@job
async def waits() -> None:
    gates[0].set()
    await asyncio.sleep(60)


@job
async def leaf(number: int) -> int:
    return number


@job
async def transacts(ctx: Context, number: int) -> int:
    async with ctx.transaction() as tx:
        tx.complete(number)
    return number


@job
async def delegates(ctx: Context) -> Result[None, int]:
    return ctx.queue(leaf(20))


@job
async def sleeps(ctx: Context) -> str:
    await ctx.sleep(0.01)
    return "awake"


@job(requires=[with_session])
async def needs_a_session(ctx: Context) -> str:
    return ctx.resource(Session).name


@job(requires=[Named], middlewares=[Named("own")])
async def needs_a_name() -> None:
    pass


@job
async def finds() -> list[str]:
    ctx = current()
    return [ctx.resource(Session).name, ctx.resource(ReadOnly).name]


@job(max_attempts=1)
async def misses(ctx: Context) -> None:
    ctx.resource(asyncio.Event)


# ── the chain ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_first_is_outermost_and_those_of_the_type_are_inside(make_app: MakeApp) -> None:
    app = make_app(with_its_own, middlewares=[outer, Named("second")])
    async with app.running():
        assert await app.enqueue(with_its_own()).result(timeout=10) == 1
    assert log == [
        *("outer in with_its_own 1", "second in", "inner in", "handler"),
        *("inner out with 1", "second out with 1", "outer out"),
    ]


@pytest.mark.parametrize("handler", [on_the_loop, in_a_thread])
async def test_a_handler_finds_what_was_provided_while_it_runs(
    make_app: MakeApp, handler: JobType[[int], int, int]
) -> None:
    app = make_app(handler, middlewares=[with_session])
    async with app.running():
        assert await app.enqueue(handler(7)).result(timeout=10) == 7
    assert log == ["handler has True", "session closed"]


async def test_each_attempt_has_its_own(make_app: MakeApp) -> None:
    async def provides(ctx: Context, call_next: CallNext) -> object:
        ctx.provide(Session, Session(ctx.id))
        log.append("provided")
        if len(log) == 3:
            gates[0].set()
        return await call_next()

    app = make_app(side_by_side, middlewares=[provides])
    async with app.running(concurrency=3):
        handles = await app.enqueue_many([side_by_side() for _ in range(3)])
        assert [await each.result(timeout=10) for each in handles] == [each.id for each in handles]


async def test_what_is_provided_hides_what_the_lifespan_yields(make_app: MakeApp) -> None:
    @asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[tuple[Session, ReadOnly]]:
        yield Session("of the worker"), ReadOnly("for reading, of the worker")

    async def provides(ctx: Context, call_next: CallNext) -> object:
        ctx.provide(Session, Session("of the attempt"))
        return await call_next()

    app = make_app(finds, misses, lifespan=lifespan, middlewares=[provides])
    async with app.running():
        assert await app.enqueue(finds()).result(timeout=10) == ["of the attempt", "for reading, of the worker"]
        with pytest.raises(JobFailed, match=r"no resource of type Event.*Session; middlewares provided Session"):
            await app.enqueue(misses()).result(timeout=10)


async def test_one_provided_later_or_of_a_narrower_class_is_found(make_app: MakeApp) -> None:
    async def provides(ctx: Context, call_next: CallNext) -> object:
        ctx.provide(Session, Session("first"))
        ctx.provide(ReadOnly, ReadOnly("narrow"))
        assert ctx.resource(Session).name == "first"
        ctx.provide(Session, Session("second"))
        assert ctx.resource(object) is ctx.resource(Session), "the newest that fits"
        with pytest.raises(ValueError, match="the value is no ReadOnly"):
            ctx.provide(ReadOnly, Session())
        return await call_next()

    app = make_app(finds, middlewares=[provides])
    async with app.running():
        assert await app.enqueue(finds()).result(timeout=10) == ["second", "narrow"]


async def test_a_batch_is_one_call_whose_jobs_share_what_was_provided(make_app: MakeApp) -> None:
    for handler in (many, many_in_a_thread):
        log.clear()
        app = make_app(handler, middlewares=[with_session, Named("around")])
        async with app:
            handles = await app.enqueue_many([handler(number) for number in range(3)])
            async with app.worker():
                assert [await each.result(timeout=10) for each in handles] == [0, 1, 2]
        assert log == ["around in", "3 share 1", "around out with [0, 1, 2]", "session closed"]


async def test_a_middleware_around_a_batch_sees_all_its_jobs(make_app: MakeApp) -> None:
    async def filters(ctx: Context, call_next: CallNext) -> object:
        await call_next()
        return [Abort("odd") if each.arguments["item"] == 1 else each.id for each in ctx.batch]

    @batch_job(size=2, max_wait=0.5, max_attempts=1)
    async def ids(numbers: list[int]) -> Sequence[str]:
        return [""] * len(numbers)

    app = make_app(ids, middlewares=[filters])
    async with app:
        even, odd = await app.enqueue_many([ids(0), ids(1)])
        async with app.worker():
            assert await even.result(timeout=10) == even.id
            with pytest.raises(JobFailed, match="odd"):
                await odd.result(timeout=10)


# ── what one may do ─────────────────────────────────────────────────────────────────────────────────────────


async def test_it_may_replace_the_result(make_app: MakeApp) -> None:
    app = make_app(leaf, middlewares=[doubled])
    async with app.running():
        assert await app.enqueue(leaf(21)).result(timeout=10) == 42


async def test_what_it_raises_means_what_it_means_in_a_handler(make_app: MakeApp) -> None:
    app = make_app(plain, middlewares=[refuses])
    async with app.running():
        ended = [await app.wait((await app.enqueue(plain(number))).id, timeout=10) for number in range(6)]
    assert [(info.state, info.attempt) for info in ended] == [
        (State.COMPLETED, 1),
        (State.FAILED, 1),
        (State.COMPLETED, 2),
        (State.COMPLETED, 1),
        (State.DEAD_LETTER, 2),
        (State.COMPLETED, 1),
    ]
    assert ended[4].error is not None and ended[4].error.type == "ValueError"
    assert [info.result for info in ended if info.state is State.COMPLETED] == [
        *("handled 0", "handled 2", "handled 3", "instead"),
    ]


async def test_timeouts_cover_it_and_it_cleans_up(make_app: MakeApp) -> None:
    async def slow(ctx: Context, call_next: CallNext) -> object:
        await asyncio.sleep(60)
        return await call_next()

    for inside in ([], [slow]):
        log.clear()
        app = make_app(never_ends, middlewares=[outer, *inside])
        async with app.running():
            info = await app.wait((await app.enqueue(never_ends())).id, timeout=10)
        assert info.error is not None and info.error.category == "timeout"
        assert log == ["outer in never_ends 1", "outer out"]


async def test_what_a_thread_still_uses_is_not_closed_under_it(make_app: MakeApp) -> None:
    app = make_app(stuck_in_a_thread, middlewares=[with_session])
    released.clear()
    async with app.running() as worker:
        try:
            info = await app.wait((await app.enqueue(stuck_in_a_thread())).id, timeout=10)
            assert info.state is State.DEAD_LETTER, "settled without the thread"
            assert log == []
        finally:
            released.set()
        await asyncio.wait_for(worker.idle(), 10)
    assert log == ["still open: True", "session closed"]


async def test_a_forced_cancellation_goes_through_it(make_app: MakeApp) -> None:
    app = make_app(waits, middlewares=[outer])
    async with app.running():
        handle = await app.enqueue(waits())
        await asyncio.wait_for(gates[0].wait(), 10)
        await app.cancel(handle.id, force=True)
        assert (await app.wait(handle.id, timeout=10)).state is State.CANCELLED
    assert log == ["outer in waits 1", "outer out"]


async def test_results_pass_through_unchanged(make_app: MakeApp) -> None:
    seen: list[object] = []

    async def looks(ctx: Context, call_next: CallNext) -> object:
        value = await call_next()
        seen.append(value)
        return value

    app = make_app(delegates, leaf, middlewares=[looks])
    async with app.running():
        assert await app.enqueue(delegates()).group(timeout=10) == 20
    assert isinstance(seen[0], Result) and seen[1:] == [20]


async def test_a_result_that_it_drops_is_an_error_like_one_the_handler_dropped(make_app: MakeApp) -> None:
    async def drops(ctx: Context, call_next: CallNext) -> object:
        await call_next()
        return None

    app = make_app(delegates, middlewares=[drops])
    async with app.running():
        info = await app.wait((await app.enqueue(delegates(), max_attempts=1)).id, timeout=10)
        assert info.error is not None and "not returned" in info.error.message


async def test_what_a_transaction_completed_stays(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/jobs.db", jobs=[transacts], middlewares=[doubled])
    async with app.running():
        assert await app.enqueue(transacts(21)).result(timeout=10) == 21


async def test_a_sleeping_job_passes_through_it(make_app: MakeApp) -> None:
    app = make_app(sleeps, middlewares=[outer])
    async with app.running():
        assert await app.enqueue(sleeps()).result(timeout=10) == "awake"
    assert log == ["outer in sleeps 1", "outer out"] * 2


async def test_one_that_does_not_go_on_ends_a_job_with_steps_too(make_app: MakeApp) -> None:
    async def once_only(ctx: Context, call_next: CallNext) -> object:
        log.append("in")
        return await call_next() if len(log) == 1 else "had enough"

    app = make_app(sleeps, middlewares=[once_only])
    async with app.running():
        assert await app.enqueue(sleeps()).result(timeout=10) == "had enough"


async def test_rehearsals_have_them() -> None:
    rehearsal = Rehearsal(App("memory://", jobs=[leaf], middlewares=[doubled]))
    assert await rehearsal.run(leaf(4)) == 8


# ── mistakes ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("middleware", "told"),
    [
        (twice, r"the middleware twice called call_next\(\) twice"),
        (forgetful, r"the middleware forgetful did not await call_next\(\): write `await call_next\(\)`"),
        (foreign, r"the middleware foreign called call_next\(.*give its own ctx, or nothing"),
    ],
)
async def test_a_mistake_with_call_next_is_told_and_seen_outside(
    make_app: MakeApp, middleware: object, told: str
) -> None:
    raised: list[BaseException] = []

    async def watches(ctx: Context, call_next: CallNext) -> object:
        try:
            return await call_next()
        except Exception as error:
            raised.append(error)
            raise

    app = make_app(leaf, middlewares=[watches, middleware])
    async with app.running():
        with pytest.raises(JobFailed, match=told):
            await app.enqueue(leaf(1), max_attempts=1).result(timeout=10)
    assert len(raised) == 1


async def test_one_that_leaves_before_its_inside_is_told(make_app: MakeApp) -> None:
    app = make_app(waits, middlewares=[hasty])
    async with app.running():
        with pytest.raises(JobFailed, match=r"the middleware hasty returned before its call_next\(\) had ended"):
            await app.enqueue(waits(), max_attempts=1).result(timeout=10)
        begun = left.pop()
        begun.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await begun


async def test_call_next_ends_with_its_middleware(make_app: MakeApp) -> None:
    kept: list[CallNext] = []

    async def keeps(ctx: Context, call_next: CallNext) -> object:
        kept.append(call_next)
        return 0

    app = make_app(leaf, middlewares=[keeps])
    async with app.running():
        await app.enqueue(leaf(1)).result(timeout=10)
    with pytest.raises(RuntimeError, match=r"after the middleware .*keeps had ended"):
        kept[0]()  # type: ignore[unused-coroutine] # there is none: the call itself is refused


async def test_a_worker_without_what_a_type_requires_does_not_start(make_app: MakeApp) -> None:
    app = make_app(needs_a_session, plain, middlewares=[outer])
    told = r"needs_a_session requires the middleware with_session, and this app has outer: add it"
    with pytest.raises(DefinitionError, match=told):
        app.worker()
    async with app, app.worker(types=[plain]):
        await app.enqueue(needs_a_session())  # a client has no need of them
        assert await app.enqueue(plain(0)).result(timeout=10) == "handled 0"


async def test_what_is_required_may_be_the_apps_or_the_types_own(make_app: MakeApp) -> None:
    app = make_app(needs_a_session, needs_a_name, middlewares=[with_session])
    async with app.running():
        assert await app.enqueue(needs_a_session()).result(timeout=10) == "session"
        await app.enqueue(needs_a_name()).result(timeout=10)
    with pytest.raises(DefinitionError, match=r"requires the middleware Named, and this app has none"):
        make_app(job(requires=[Named])(_nothing)).worker()


async def _nothing() -> None:
    pass
