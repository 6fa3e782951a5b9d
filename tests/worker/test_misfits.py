"""Old and new code side by side: a job that does not fit this worker's code waits for one that it fits."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ropewalk import App, InvalidInput, job
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.operations import RetryStatus
from ropewalk.domain.jobs.states import State
from tests.apps import MakeApp

compensated: list[str] = []


@job(name="undo")
async def undo(name: str) -> None:
    compensated.append(name)


@job(name="greet", on_failure=undo)
async def old_greet(name: str) -> str:
    return f"hello {name}"


@job(name="greet", on_failure=undo)
async def new_greet(name: str, loud: bool = False) -> str:
    return f"hello {name}" + ("!" if loud else "")


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/shared.db"


async def test_old_code_runs_what_new_code_enqueues_without_the_new_argument(place: str) -> None:
    async with App(place, jobs=[new_greet, undo]) as new, App(place, jobs=[old_greet, undo]) as old:
        handle = await new.enqueue(new_greet("ada"))
        again = await new.enqueue(new_greet("eve", loud=False))
        async with old.worker():
            assert await handle.result(timeout=10) == "hello ada"
            assert await again.result(timeout=10) == "hello eve"


async def test_it_fails_once_when_every_live_worker_of_the_type_has_refused_it(place: str) -> None:
    compensated.clear()
    async with App(place, jobs=[new_greet, undo]) as new, App(place, jobs=[old_greet, undo]) as old:
        async with old.worker(), new.worker(types=["undo"]) as other:
            assert other is not None
            handle = await new.enqueue(new_greet("ada", loud=True), max_attempts=1)
            async with asyncio.timeout(10):
                while (await new.get(handle.id)).state is not State.FAILED or not compensated:
                    await asyncio.sleep(0.01)
        assert compensated == ["ada"]


async def test_a_job_is_given_back_while_another_worker_may_fit(place: str) -> None:
    compensated.clear()
    async with App(place, jobs=[new_greet, undo]) as new, App(place, jobs=[old_greet, undo]) as old:
        handle = await new.enqueue(new_greet("ada", loud=True), max_attempts=1)
        async with new.worker() as fresh:
            await new.pause("default")
            async with old.worker():
                async with asyncio.timeout(10):
                    while len(await new.workers()) < 2:
                        await asyncio.sleep(0.01)
                assert fresh is not None
                await new.resume("default")
                assert await handle.result(timeout=30) == "hello ada!"
        info = await new.get(handle.id)
        assert (info.attempt, info.error, compensated) == (1, None, [])


async def test_one_worker_alone_fails_it_at_once(make_app: MakeApp) -> None:
    app = make_app(old_greet, undo)
    async with app.running():
        handle = await app.enqueue("greet", {"name": "ada"})
        assert await handle.result(timeout=10) == "hello ada"


async def test_a_failed_job_is_shown_edited_and_retried(place: str) -> None:
    async with App(place, jobs=[new_greet, undo]) as new, App(place, jobs=[old_greet, undo]) as old:
        handle = await new.enqueue(new_greet("ada", loud=True))
        async with old.worker():
            async with asyncio.timeout(10):
                while not (info := await old.get(handle.id)).terminal:
                    await asyncio.sleep(0.01)
            assert info.error is not None
            assert (info.error.category, info.error.code) == (Category.PERMANENT, "bad_input")
            assert info.arguments == {"name": "ada", "loud": True}, "what is stored, although it does not fit"
            with pytest.raises(InvalidInput, match="loud"):
                await old.retry(handle.id, arguments={"name": "ada", "loud": True})
            assert (await old.retry(handle.id, arguments={"name": "eve"})).status is RetryStatus.QUEUED
            assert await handle.result(timeout=10) == "hello eve"


async def test_a_compensation_gets_the_defaults_of_the_failed_type(make_app: MakeApp) -> None:
    got: list[tuple[str, int]] = []

    @job
    async def back(name: str, times: int = 1) -> None:
        got.append((name, times))

    @job(on_failure=back)
    async def forth(name: str, times: int = 5) -> None:
        raise ValueError(name)

    app = make_app(forth, back)
    async with app.running():
        await app.enqueue(forth("ada"), max_attempts=1)
        async with asyncio.timeout(10):
            while not got:
                await asyncio.sleep(0.01)
    assert got == [("ada", 5)]


class TestDefaults:
    def test_what_equals_a_default_is_not_stored(self) -> None:
        shared = [1]

        @job
        def plain(
            a: int, *, b: int = 0, c: bool = True, d: float = 0.0, e: str | None = None, f: list[int] = shared
        ) -> None: ...

        assert plain(1).input == b'{"a":1}'
        assert plain(1, b=0, f=[1]).input == b'{"a":1}'
        assert plain(1, d=-0.0).input == b'{"a":1,"d":-0.0}'
        assert plain(1, b=1, e="x").input == b'{"a":1,"b":1,"e":"x"}'
        shared.append(2)
        assert plain(1).arguments["f"] == [1], "the default is what it was when the first job was built"
        assert plain(1).input == b'{"a":1}'
        assert plain(1, f=[1, 2]).input == b'{"a":1,"f":[1,2]}'

    def test_a_default_that_cannot_be_compared_does_no_harm(self) -> None:
        class Never:
            def __eq__(self, other: object) -> bool:
                raise TypeError("not comparable")

            __hash__ = None  # type: ignore[assignment] # what Python itself sets

        never = Never()

        @job
        def odd(a: int, b: object = None, c: float = float("nan")) -> None: ...

        assert odd(1).input == b'{"a":1}'
        with pytest.raises(InvalidInput):
            odd(1, b=never)

    def test_equal_content_is_equal(self) -> None:
        assert new_greet("ada").input == new_greet("ada", loud=False).input
        assert new_greet("ada").arguments == {"name": "ada", "loud": False}
