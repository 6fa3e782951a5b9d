"""A result that is gone is told from the result None: whoever asks for it gets NotFound."""

from __future__ import annotations

from typing import Any

import pytest

from ropewalk import App, Chain, Conflict, Context, Handle, JobFailed, NotFound, Result, Retention, State, job
from tests.apps import MakeApp

NO_RESULTS = Retention(results_us=0)
NO_LANDINGS = Retention(types={"landing": 0})


@job
async def landing() -> str:
    return "landed"


@job
async def countdown(ctx: Context, n: int) -> Result[str, str]:
    return ctx.continue_with(countdown(n - 1) if n else landing())


@job
async def plain() -> str:
    return "plain"


@job
async def nothing() -> None:
    return None


@job
async def reads(ctx: Context) -> list[object]:
    return [each.result for each in ctx.dependencies]


async def test_the_end_of_a_chain_deleted_under_its_handle(make_app: MakeApp) -> None:
    app = make_app(countdown, landing)
    async with app.running():
        handle = await app.enqueue(countdown(1))
        assert await handle.chain(timeout=10) == "landed"
        [*_, end] = await app.chain(handle.id)
        await app.delete(end.id)
        await _is_gone(handle, "the last job of the chain of")


async def test_retention_alone_takes_the_end_of_a_chain(make_app: MakeApp) -> None:
    app = make_app(countdown, landing)
    async with app.running():
        handle = await app.enqueue(countdown(1))
        await handle.chain(timeout=10)
        await _prune(app, NO_LANDINGS)
        assert [link.type for link in await app.chain(handle.id)] == ["countdown", "countdown"]
        await _is_gone(handle, "the last job of the chain of")


async def test_a_result_that_was_forgotten_is_not_none(make_app: MakeApp) -> None:
    app = make_app(plain, nothing)
    async with app.running():
        handle, none = await app.enqueue_many([plain(), nothing()])
        assert await handle.result(timeout=10) == "plain"
        assert await none.result(timeout=10) is None
        await _prune(app, NO_RESULTS)
        await _is_gone(handle, "the result of job")
        assert await none.result(timeout=10) is None, "what never had a result still says so"
        with pytest.raises(NotFound, match="value of group"):
            await handle.group(timeout=10)
        info = await app.get(handle.id)
        assert (info.result, info.result_forgotten, info.state) == (None, True, State.COMPLETED)
        assert "forgotten" in str((await app.group(handle.id)).conflict)
        assert not (await app.get(none.id)).result_forgotten


async def test_what_a_job_depends_on_is_kept_for_it(make_app: MakeApp) -> None:
    app = make_app(countdown, landing, plain, nothing, reads)
    chained, first = countdown(1), plain()
    later = nothing().using(delay=3600)
    after = reads().using(depends_on=[Chain(chained), first, later])
    async with app.running():
        await app.enqueue_many([chained, first, later, after])
        await app.handle(chained.id, countdown).chain(timeout=10)
        [*_, end] = await app.chain(chained.id)
        with pytest.raises(Conflict, match=f"{end.id} is still needed by {after.id}"):
            await app.delete(end.id)
        await app.handle(first.id, plain).result(timeout=10)
        for retention in (NO_RESULTS, NO_LANDINGS, Retention(completed_us=0)):
            await _prune(app, retention)
        await app.trigger(later.id)
        assert await app.handle(after.id, reads).result(timeout=10) == ["landed", "plain", None]


async def test_a_dependency_that_was_forgotten_before_says_so(make_app: MakeApp) -> None:
    app = make_app(plain, reads)
    async with app.running():
        handle = await app.enqueue(plain())
        await handle.result(timeout=10)
        await _prune(app, NO_RESULTS)
        after = await app.enqueue(reads(), depends_on=handle, max_attempts=1)
        with pytest.raises(JobFailed, match="which this job depended on, is gone"):
            await after.result(timeout=10)


async def _is_gone(handle: Handle[Any, Any], message: str) -> None:
    for ask in (handle.chain, handle.result):
        with pytest.raises(NotFound, match=message):
            await ask(timeout=10)


async def _prune(app: App, retention: Retention) -> None:
    await app._app_state.store.prune(retention, 99)
