"""live-4: a function of the user's that raises CancelledError or SystemExit, neither of which is an Exception, ends
neither a worker nor one of its loops: `on_error` hears of it, and healthy jobs go on."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ropewalk import (
    App,
    AppDefaults,
    Backoff,
    Context,
    JobFailed,
    OrphanGroup,
    Result,
    State,
    UnexpectedExit,
    job,
    schedule,
)
from ropewalk.domain.time import SECOND
from ropewalk.domain.user_calls import as_error, guarded, guarded_await
from ropewalk.policies import RateLimited
from ropewalk.worker.services import orphan_groups
from ropewalk.worker.services.orphan_groups import OrphansConfig
from tests.apps import MakeApp

STRAY = (asyncio.CancelledError, SystemExit, KeyboardInterrupt, GeneratorExit)
raises: list[type[BaseException]] = [SystemExit]
"""what every function here raises"""


@pytest.fixture(autouse=True, params=[asyncio.CancelledError, SystemExit], ids=lambda kind: kind.__name__)
def _raised(request: pytest.FixtureRequest) -> None:
    raises[:] = [request.param]


class Answer:
    """An answer that raises as soon as somebody looks at it."""

    def __bool__(self) -> bool:
        return boom()  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return boom()  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return boom()  # type: ignore[no-any-return]

    __hash__ = None  # type: ignore[assignment]
    __repr__ = __str__


def answers(*_: object) -> Any:
    return Answer()


async def answers_later(*_: object) -> Any:
    await asyncio.sleep(0)
    return Answer()


def boom(*_: object, **__: object) -> Any:
    raise raises[0]("raised by a function that is no handler")


async def boom_later(*_: object) -> Any:
    await asyncio.sleep(0)
    boom()


class Indescribable(Exception):
    __str__ = __repr__ = boom


@job(max_attempts=2, backoff=Backoff.constant(0))
async def healthy(n: int) -> int:
    return n


@job
async def slow() -> None:
    """Takes longer to be stopped than a cancelled loop to be started again."""
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0.2)


@job
async def tree(ctx: Context) -> Result[None, int]:
    return ctx.queue(healthy(1))


@job(max_attempts=1)
async def failing() -> None:
    raise ValueError("its own")


@job(max_attempts=1, decide=boom)
async def judged() -> None:
    raise ValueError("its own")


@job(max_attempts=1, decide=answers)
async def judged_by_an_answer() -> None:
    raise ValueError("its own")


@job(max_attempts=2, backoff=boom)
async def spaced(ctx: Context) -> int:
    if ctx.attempt == 1:
        raise ValueError("its own")
    return ctx.attempt


@job(max_attempts=1)
async def folding(ctx: Context) -> Result[int, int]:
    return ctx.result(1, append=boom)


@job(max_attempts=1)
async def indescribable() -> None:
    raise Indescribable


@job(max_attempts=1, middlewares=[boom_later])
async def wrapped() -> None: ...


@job(max_attempts=1, log_context=boom)
async def logging_(ctx: Context) -> None:
    ctx.log.info("a line")


@job(unique=boom)
async def keyed(n: int) -> None: ...


@job(options=boom)
async def computed(n: int) -> None: ...


def on_kind(kind: str, hook: Callable[[], Any] = boom) -> Callable[[Any], Any]:
    return lambda event: hook() if event.kind == kind and event.job_id == "first" else None


async def completes(app: App) -> None:
    """A healthy job that is enqueued now."""
    for handle in await app.enqueue_many(healthy(n) for n in range(3)):
        await handle.result(timeout=8)


CASES: dict[str, tuple[Any, State, str | None, dict[str, Any], dict[str, Any]]] = {
    # the job, its end, the phase that on_error hears, options of the app, options of the worker
    "on_event started": (healthy(1), State.COMPLETED, "on_event", {"on_event": on_kind("started")}, {}),
    "on_event succeeded": (healthy(1), State.COMPLETED, "on_event", {"on_event": on_kind("succeeded")}, {}),
    "on_event failed": (failing(), State.DEAD_LETTER, "on_event", {"on_event": on_kind("failed")}, {}),
    "on_event async": (healthy(1), State.COMPLETED, "on_event", {"on_event": on_kind("succeeded", boom_later)}, {}),
    "decide": (judged(), State.DEAD_LETTER, "decide of judged", {}, {}),
    "decide of the app": (
        failing(),
        State.DEAD_LETTER,
        "decide of the app",
        {"defaults": AppDefaults.of(decide=boom)},
        {},
    ),
    "backoff": (spaced(), State.COMPLETED, "backoff of spaced", {}, {}),
    "append": (folding(), State.COMPLETED, "append", {}, {}),
    "accept": (healthy(1), State.COMPLETED, "accept", {}, {"accept": boom}),
    "decide's answer": (judged_by_an_answer(), State.DEAD_LETTER, "decide of judged_by_an_answer", {}, {}),
    "decide's answer of the app": (
        failing(),
        State.DEAD_LETTER,
        "decide of the app",
        {"defaults": AppDefaults.of(decide=answers)},
        {},
    ),
    "accept's answer": (healthy(1), State.COMPLETED, "accept", {}, {"accept": answers}),
    "per's answer": (
        healthy(1),
        State.COMPLETED,
        "per",
        {},
        {"concurrency": RateLimited(100, 1, per=answers, max=5)},
    ),
    "backpressure's answer": (healthy(1), State.COMPLETED, "backpressure", {}, {"backpressure": answers}),
    "backpressure's async answer": (healthy(1), State.COMPLETED, "backpressure", {}, {"backpressure": answers_later}),
    "per": (healthy(1), State.COMPLETED, "per", {}, {"concurrency": RateLimited(100, 1, per=boom, max=5)}),
    "backpressure": (healthy(1), State.COMPLETED, "backpressure", {}, {"backpressure": boom}),
    "backpressure async": (healthy(1), State.COMPLETED, "backpressure", {}, {"backpressure": boom_later}),
    "its own message": (indescribable(), State.DEAD_LETTER, None, {}, {}),
    "a middleware": (wrapped(), State.DEAD_LETTER, None, {}, {}),
    "log_context": (logging_(), State.COMPLETED, None, {}, {}),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_function_that_exits_ends_no_worker(make_app: MakeApp, name: str) -> None:
    """live-4."""
    first, end, phase, app_options, worker_options = CASES[name]
    reported: list[tuple[str, BaseException]] = []
    app = make_app(
        healthy, failing, judged, judged_by_an_answer, spaced, folding, indescribable, wrapped, logging_,
        on_error=lambda error, told: reported.append((told, error)), **app_options,
    )  # fmt: skip
    async with app, app.worker(poll=0.05, **worker_options) as worker:
        await app.enqueue(first, id="first")
        info = await app.wait("first", timeout=8)
        await completes(app)
        assert worker.ready
    assert info.state is end
    if phase is not None:
        errors = [error for told, error in reported if told == phase]
        assert errors and all(isinstance(each, UnexpectedExit) for each in errors)
        assert all(isinstance(each.__cause__, raises[0]) for each in errors)


async def test_on_error_itself_may_exit(make_app: MakeApp) -> None:
    """live-4: what it raises is logged."""
    app = make_app(healthy, on_event=on_kind("succeeded"), on_error=boom)
    async with app, app.worker(poll=0.05):
        await app.enqueue(healthy(1), id="first")
        await completes(app)


async def test_a_filter_of_the_log_may_exit(make_app: MakeApp, capsys: pytest.CaptureFixture[str]) -> None:
    """live-4: where there is no `on_error`, errors are logged; what that raises is printed."""
    app = make_app(healthy, on_event=on_kind("succeeded"))
    logger = logging.getLogger("ropewalk")
    logger.addFilter(boom)
    try:
        async with app, app.worker(poll=0.05):
            await app.enqueue(healthy(1), id="first")
            await completes(app)
    finally:
        logger.removeFilter(boom)
    assert raises[0].__name__ in capsys.readouterr().err


@pytest.mark.parametrize("hook", [boom, boom_later])
async def test_a_hook_of_orphan_groups_may_exit(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, hook: Callable[[OrphanGroup], Any]
) -> None:
    """live-4."""
    quick = OrphansConfig(every_seconds=0.02, hide_us=SECOND // 100)
    monkeypatch.setattr(orphan_groups, "OrphansConfig", lambda: quick)
    heard = asyncio.Event()

    def on_error(_: BaseException, phase: str) -> None:
        if phase == "on_orphan_group":
            heard.set()

    app = make_app(healthy, tree, on_orphan_group=hook, on_error=on_error)
    async with app, app.worker(poll=0.05):
        await app.enqueue(tree())
        await completes(app)
        await asyncio.wait_for(heard.wait(), 15)
        await completes(app)


def next_boom(_: Any) -> Any:
    boom()


def run_boom(_: Any) -> Any:
    boom()


async def run_boom_later(_: Any) -> Any:
    await boom_later()


@pytest.mark.parametrize(
    "options",
    [
        {"next": next_boom, "job": healthy(1)},
        {"every": 0.1, "run": run_boom},
        {"every": 0.1, "run": run_boom_later},
    ],
    ids=["next", "run", "run async"],
)
async def test_a_function_of_a_schedule_may_exit(make_app: MakeApp, options: Any) -> None:
    """live-4."""
    heard = asyncio.Event()

    def on_error(error: BaseException, phase: str) -> None:
        if phase == "schedule s" and isinstance(error, UnexpectedExit):
            heard.set()

    app = make_app(healthy, schedules=[schedule("s", **options)], on_error=on_error)
    async with app, app.worker(poll=0.05):
        await asyncio.wait_for(heard.wait(), 8)
        await completes(app)


@pytest.mark.parametrize("made", [keyed, computed])
async def test_a_function_asked_while_enqueueing_fails_that_call(make_app: MakeApp, made: Any) -> None:
    """live-4: whoever enqueues hears of it, as of any error."""
    app = make_app(healthy, keyed, computed)
    async with app, app.worker(poll=0.05):
        with pytest.raises(UnexpectedExit):
            await app.enqueue(made(1))
        await completes(app)


async def test_a_handler_that_exits_fails_its_attempt(make_app: MakeApp) -> None:
    """live-4: as ever; the worker goes on."""

    @job(max_attempts=1)
    async def exits() -> None:
        boom()

    app = make_app(healthy, exits)
    async with app, app.worker(poll=0.05):
        handle = await app.enqueue(exits())
        with pytest.raises(JobFailed):
            await handle.result(timeout=8)
        await completes(app)


async def test_a_cancellation_of_the_task_that_awaits_passes() -> None:
    """The task is being cancelled; what it awaits did not raise."""
    task = asyncio.create_task(guarded_await(asyncio.Event().wait()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_is_awaited_may_exit() -> None:
    with pytest.raises(UnexpectedExit) as caught:
        await guarded_await(boom_later())
    assert isinstance(caught.value.__cause__, raises[0])


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_a_signal_raises_passes(monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]) -> None:
    """A signal that arrives in the middle of a function must still stop the program."""

    def end(*_: object) -> None:
        raise kind

    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(kind):
            guarded(signal.raise_signal, signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_interrupt_by_the_usual_handler_passes() -> None:
    """asyncio.run() replaces that handler by one of its own, which leaves a frame."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            guarded(signal.raise_signal, signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_no_signal_is_handled_in_another_thread() -> None:
    caught: list[BaseException] = []

    def interrupted() -> None:
        try:
            raise KeyboardInterrupt
        except BaseException as error:
            caught.append(as_error(error))

    thread = threading.Thread(target=interrupted)
    thread.start()
    thread.join()
    assert isinstance(caught[0], UnexpectedExit)


def test_a_worker_that_ends_with_its_event_loop_reports_nothing() -> None:
    """`asyncio.run` cancels every task when it ends: the loops of a worker, and the task that runs it."""
    reported: list[str] = []
    started: list[asyncio.Task[bool]] = []

    async def main() -> None:
        app = App("memory://", jobs=[slow], on_error=lambda error, phase: reported.append(f"{phase}: {error}"))
        worker = app.worker(grace=1)
        started.append(asyncio.create_task(worker.run()))
        handle = await app.enqueue(slow())
        while (await handle.status()).state is not State.RUNNING:
            await asyncio.sleep(0)

    asyncio.run(main())
    assert started[0].done() and reported == []
