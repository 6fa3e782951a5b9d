"""Retries of jobs that others depend on, as the client makes them."""

from __future__ import annotations

from typing import Final

import pytest

from ropewalk import App, Filter, Group, RetryStatus, State, job
from tests.apps import MakeApp

FAN: Final = 1500


@job
async def parent() -> None: ...


@job
async def child() -> None: ...


@pytest.mark.parametrize("cascade", [False, True])
async def test_a_parent_of_many_is_retried_before_all_of_them_were_told(make_app: MakeApp, *, cascade: bool) -> None:
    """safe-9: without cascade all of them end as their parent did, with cascade all of them wait again."""
    app = make_app(parent, child)
    async with app:
        above = parent().using(delay=3600)
        await app.enqueue_many([above, *(child().using(depends_on=above) for _ in range(FAN))])
        await app.cancel(above.id)
        assert await _count(app, State.PENDING) == FAN - 1000
        answer = await app.retry(above.id, include_cancelled=True, cascade=cascade)
        assert answer.status is RetryStatus.QUEUED
        assert await _count(app, State.PENDING if cascade else State.CANCELLED) == FAN


async def test_parents_and_children_are_retried_whatever_batch_they_are_in(make_app: MakeApp) -> None:
    """safe-8: also where the parent is named last, more than a thousand jobs behind its child."""
    app = make_app(parent, child)
    async with app:
        above, below = parent().using(delay=3600), child()
        await app.enqueue_many([above, below.using(depends_on=above), *(child() for _ in range(1000))])
        await app.cancel_many(Filter(types=("child",)))
        await app.cancel(above.id)
        others = [info.id for info in (await app.search(Filter(types=("child",)), limit=1000)).jobs]
        ids = [below.id, *(each for each in others if each != below.id), above.id]
        result = await app.retry_many(ids, include_cancelled=True)
        assert (result.requested, result.done, result.skipped) == (len(ids), len(ids), 0)
        assert (await app.get(below.id)).state is State.PENDING
        assert (await app.why(below.id)).cause == "dependencies"


async def test_a_child_alone_is_skipped_while_its_gate_cannot_open(make_app: MakeApp) -> None:
    app = make_app(parent, child)
    async with app:
        above, below = parent().using(delay=3600), child()
        await app.enqueue_many([above, below.using(depends_on=Group(above))])
        await app.fail(above.id, "no")
        refused = await app.retry(below.id)
        assert (refused.status, refused.reason) == (RetryStatus.NOT_RETRIABLE, "unmet_dependencies")
        result = await app.retry_many([below.id])
        assert (result.requested, result.done, result.skipped) == (1, 0, 1)


async def _count(app: App, state: State) -> int:
    return await app.count(Filter(types=("child",), states=(state,)))
