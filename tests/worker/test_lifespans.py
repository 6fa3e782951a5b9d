"""A lifespan that raises what is no Exception: its worker fails to start, or its stop fails, as by any error."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any

import pytest

from ropewalk import App, UnexpectedExit, job
from ropewalk.domain.user_calls import is_being_cancelled
from tests.apps import MakeApp

STRAY = (asyncio.CancelledError, SystemExit, KeyboardInterrupt, GeneratorExit)
Lifespan = Callable[[App], AbstractAsyncContextManager[object]]


@job
async def healthy(n: int) -> int:
    return n


def enters_with(kind: type[BaseException]) -> Lifespan:
    @asynccontextmanager
    async def lifespan(_: App) -> AsyncGenerator[None]:
        await asyncio.sleep(0)
        raise kind("raised by the lifespan")
        yield

    return lifespan


def leaves_with(kind: type[BaseException]) -> Lifespan:
    @asynccontextmanager
    async def lifespan(_: App) -> AsyncGenerator[None]:
        yield
        await asyncio.sleep(0)
        raise kind("raised by the lifespan")

    return lifespan


def cannot_be_made(kind: type[BaseException]) -> Lifespan:
    def lifespan(_: App) -> AbstractAsyncContextManager[object]:
        raise kind("raised by the lifespan")

    return lifespan


async def serves(app: App) -> None:
    async with app.worker(poll=0.05):
        assert await app.enqueue(healthy(7)).result(timeout=8) == 7


@pytest.mark.parametrize("kind", STRAY)
@pytest.mark.parametrize("make", [enters_with, cannot_be_made])
async def test_the_start_fails_clearly(
    make_app: MakeApp, make: Callable[[type[BaseException]], Lifespan], kind: type[BaseException]
) -> None:
    app = make_app(healthy, lifespan=make(kind))
    async with app, asyncio.timeout(10):
        with pytest.raises(UnexpectedExit, match=kind.__name__) as caught:
            async with app.worker():
                raise AssertionError("it does not start")
        with pytest.raises(UnexpectedExit):
            await app.worker().run()
        assert await app.workers() == []
        await serves(make_app(healthy))
    assert isinstance(caught.value.__cause__, kind)
    assert not is_being_cancelled()


@pytest.mark.parametrize("kind", STRAY)
async def test_the_stop_fails_after_the_drain(make_app: MakeApp, kind: type[BaseException]) -> None:
    app = make_app(healthy, lifespan=leaves_with(kind))
    async with app, asyncio.timeout(10):
        worker = app.worker(poll=0.05)
        with pytest.raises(UnexpectedExit, match=f"the lifespan of the app raised {kind.__name__}") as caught:
            async with worker:
                assert await app.enqueue(healthy(7)).result(timeout=8) == 7
        assert await app.workers() == [], "it drained before"
        assert await worker.stop() is True, "no handler was left behind"
    assert isinstance(caught.value.__cause__, kind)


async def test_the_message_says_what_a_program_exits_with(make_app: MakeApp) -> None:
    @asynccontextmanager
    async def lifespan(_: App) -> AsyncGenerator[None]:
        raise SystemExit("set DATABASE_URL")
        yield

    app = make_app(healthy, lifespan=lifespan)
    async with app:
        with pytest.raises(UnexpectedExit, match=r"the lifespan of the app raised SystemExit\('set DATABASE_URL'\)"):
            await app.worker().run()


async def test_an_ordinary_error_stays_what_it_is(make_app: MakeApp) -> None:
    async with make_app(healthy, lifespan=enters_with(ValueError)) as app:
        with pytest.raises(ValueError, match="raised by the lifespan"):
            await app.worker().run()
    async with make_app(healthy, lifespan=leaves_with(ValueError)) as app:
        with pytest.raises(ValueError, match="raised by the lifespan"):
            await serves(app)


class Swallowing(AbstractAsyncContextManager[None]):
    """Says of every error that it has handled it."""

    def __init__(self) -> None:
        self.heard: list[BaseException | None] = []

    async def __aenter__(self) -> None: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.heard.append(error)
        return True


async def test_a_lifespan_cannot_hide_that_the_start_failed(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a worker would seem to have started that runs nothing."""
    swallowing = Swallowing()
    app = make_app(healthy, lifespan=lambda _: swallowing)

    async def fails(_: object) -> None:
        raise OSError("the store is away")

    async with app:
        monkeypatch.setattr(app._app_state.store, "register", fails)
        with pytest.raises(OSError, match="the store is away"):
            async with app.worker():
                raise AssertionError("it does not start")
    assert [type(each) for each in swallowing.heard] == [OSError]


async def test_a_start_that_is_cancelled_is_cancelled(make_app: MakeApp) -> None:
    entered = asyncio.Event()

    @asynccontextmanager
    async def lifespan(_: App) -> AsyncGenerator[None]:
        entered.set()
        await asyncio.Event().wait()
        yield

    app = make_app(healthy, lifespan=lifespan)
    async with app:
        task = asyncio.create_task(app.worker().run())
        await asyncio.wait_for(entered.wait(), 8)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_a_signal_in_a_lifespan_still_stops_the_program() -> None:
    """asyncio.run() cancels the main task when an interrupt arrives."""

    @asynccontextmanager
    async def lifespan(_: App) -> AsyncGenerator[None]:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(8)
        yield

    async def main() -> None:
        async with App("memory://", jobs=[healthy], lifespan=lifespan).worker():
            raise AssertionError("it does not start")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())


@pytest.mark.parametrize("kind", STRAY)
async def test_functions_that_hear_of_a_worker_that_runs(make_app: MakeApp, kind: type[BaseException]) -> None:
    """`on_started` keeps it from running; `on_drain` is reported, and the worker drains all the same."""
    reported: list[tuple[str, BaseException]] = []

    def exits(*_: Any) -> None:
        raise kind

    app = make_app(healthy, on_error=lambda error, phase: reported.append((phase, error)))
    async with app, asyncio.timeout(20):
        with pytest.raises(UnexpectedExit):
            await app.worker(poll=0.05).run(on_started=exits)
        assert await app.workers() == []
        running = asyncio.create_task(app.worker(poll=0.05).run(on_drain=exits))
        assert await app.enqueue(healthy(7)).result(timeout=8) == 7
        [card] = await app.workers()
        await app.drain_worker(card.id)
        assert await running is True
    [(phase, error)] = reported
    assert phase == "on_drain" and isinstance(error.__cause__, kind)
