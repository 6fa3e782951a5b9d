"""`enqueue_many(..., atomic=False)`: everything that can be queued is, and what was refused is told job by job."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ropewalk import App, Conflict, InvalidInput, NotFound, PartlyEnqueued, State, StoreUnavailable, job
from ropewalk.client.handle import Handle
from ropewalk.sync import SyncHandle
from ropewalk.testing import Rehearsal
from tests.apps import MakeApp


@job
async def leaf(number: int) -> int:
    return number


async def test_each_job_has_a_handle_or_the_error_that_refused_it(make_app: MakeApp) -> None:
    app = make_app(leaf)
    await app.enqueue(leaf(1), idempotency_key="taken")
    jobs = [
        leaf(0),
        leaf(2).using(idempotency_key="taken"),
        leaf(3).using(depends_on="nobody"),
        leaf(4),
    ]
    told = r"2 of 4 jobs were not queued; the first of them, at position 1 \(leaf\): "
    with pytest.raises(PartlyEnqueued, match=told) as part:
        await app.enqueue_many(jobs, atomic=False)
    results = part.value.results
    assert [type(each) for each in results] == [Handle, Conflict, NotFound, Handle]
    assert list(part.value.refused) == [1, 2]
    assert part.value.__cause__ is results[1]
    assert [results[at].id for at in (0, 3)] == [jobs[at].id for at in (0, 3)]
    async with app.running():
        assert [await results[at].result(timeout=10) for at in (0, 3)] == [0, 4]


async def test_with_nothing_refused_there_are_handles(make_app: MakeApp) -> None:
    app = make_app(leaf)
    handles = await app.enqueue_many([leaf(number) for number in range(3)], atomic=False)
    assert [each.duplicate for each in handles] == [False] * 3
    again = await app.enqueue_many([leaf(number) for number in range(1500)], atomic=False)
    assert len(again) == 1500


async def test_jobs_that_wait_for_others_of_the_batch_may_come_first(make_app: MakeApp) -> None:
    """What depends on a refused job is refused, too: there is no such job."""
    app = make_app(leaf)
    await app.enqueue(leaf(1), idempotency_key="taken")
    refused, parent = leaf(2).using(idempotency_key="taken"), leaf(3)
    child, orphan = leaf(4).using(depends_on=parent), leaf(5).using(depends_on=refused)
    with pytest.raises(PartlyEnqueued) as part:
        await app.enqueue_many([orphan, child, refused, parent], atomic=False)
    assert [type(each) for each in part.value.results] == [NotFound, Handle, Conflict, Handle]
    assert (await app.get(child.id)).state is State.PENDING


async def test_jobs_that_wait_for_one_another_are_all_refused(make_app: MakeApp) -> None:
    app = make_app(leaf)
    first, second = leaf(1), leaf(2)
    with pytest.raises(PartlyEnqueued) as part:
        await app.enqueue_many([first.using(depends_on=second), second.using(depends_on=first)], atomic=False)
    assert [type(each) for each in part.value.results] == [InvalidInput, InvalidInput]


async def test_what_does_not_fit_is_refused_before_anything_is_queued(make_app: MakeApp) -> None:
    app = make_app(leaf)
    with pytest.raises(InvalidInput, match="priority"):
        await app.enqueue_many([leaf(1)], atomic=False, priority="x")  # type: ignore[arg-type] # that is the point
    assert await app.count() == 0


@pytest.mark.parametrize("chunks_before", [0, 1])
async def test_a_store_that_goes_away_is_told_of_the_jobs_it_did_not_take(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, chunks_before: int
) -> None:
    """With nothing queued the error is that of the store itself; what was taken before is known by its handles."""
    monkeypatch.setattr("ropewalk.client.client.BATCH", 2)
    app = make_app(leaf)
    async with app:
        calls = _away_after(app, chunks_before, monkeypatch)
        with pytest.raises(PartlyEnqueued if chunks_before else StoreUnavailable) as raised:
            await app.enqueue_many([leaf(number) for number in range(6)], atomic=False)
    assert len(calls) == chunks_before + 1, "the rest is not tried"
    if isinstance(raised.value, PartlyEnqueued):
        assert [type(each) for each in raised.value.results] == [Handle] * 2 + [StoreUnavailable] * 4


def _away_after(app: App, calls_before: int, monkeypatch: pytest.MonkeyPatch) -> list[None]:
    store: Any = app._app_state.store
    real, calls = store.submit, list[None]()

    async def submit(*args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        if len(calls) > calls_before:
            raise StoreUnavailable("the server does not answer")
        return await real(*args, **kwargs)

    monkeypatch.setattr(store, "submit", submit)
    return calls


def test_the_blocking_face_has_blocking_handles(new_app: MakeApp) -> None:
    app = new_app(leaf)
    with pytest.raises(PartlyEnqueued) as part:
        app.sync.enqueue_many([leaf(1), leaf(2).using(depends_on="nobody")], atomic=False)
    handle, error = part.value.results
    assert isinstance(handle, SyncHandle)
    assert isinstance(error, NotFound)
    assert handle.status().state is State.SCHEDULED
    asyncio.run(app.close())


async def test_a_rehearsal_runs_what_was_queued() -> None:
    async with Rehearsal(App(jobs=[leaf]), inline=True) as rehearsal:
        with pytest.raises(PartlyEnqueued) as part:
            await rehearsal.enqueue_many([leaf(1), leaf(2).using(depends_on="nobody")], atomic=False)
        assert await part.value.results[0].result() == 1
