"""What each verb answers when it is called again, as somebody does whose first answer was lost."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ropewalk import App, JobInfo, State, job
from ropewalk.client.views.answers import CancelResult, RetryResult
from ropewalk.errors import RopewalkError
from tests.apps import MakeApp

PAGE = Path(__file__).parents[2] / "docs/guide/errors.md"


@job
async def one(number: int) -> int:
    return number


ASK: dict[str, Callable[[App, str], Awaitable[object]]] = {
    "cancel": lambda app, job_id: app.cancel(job_id),
    "complete": lambda app, job_id: app.complete(job_id, 5),
    "fail": lambda app, job_id: app.fail(job_id, "no"),
    "retry": lambda app, job_id: app.retry(job_id),
    "delete": lambda app, job_id: app.delete(job_id),
    "delete_chain": lambda app, job_id: app.delete_chain(job_id),
    "trigger": lambda app, job_id: app.trigger(job_id),
    "update": lambda app, job_id: app.update(job_id, priority=5),
    "create_schedule": lambda app, _: app.create_schedule("new", every=3600, job=one(1)),
    "delete_schedule": lambda app, _: app.delete_schedule("old"),
}


@pytest.mark.parametrize("verb", list(ASK))
async def test_a_second_call_answers_what_the_guide_says(make_app: MakeApp, verb: str) -> None:
    """safe-17: nothing is changed by it."""
    async with make_app(one) as app:
        handle = await app.enqueue(one(1), delay=3600)
        await app.create_schedule("old", every=3600, job=one(1))
        if verb in ("retry", "delete", "delete_chain"):
            await app.fail(handle.id, "no")
        await ASK[verb](app, handle.id)
        before = await _shown(app, handle.id)
        assert await _answered(ASK[verb](app, handle.id)) == _documented().get(verb)
        assert await _shown(app, handle.id) == before


AGAIN: dict[str, Callable[[App], Awaitable[object]]] = {
    "pause": lambda app: app.pause("default"),
    "resume": lambda app: app.resume("default"),
    "set_limit": lambda app: app.set_limit(queue="mail", concurrency=3),
    "set_quota": lambda app: app.set_quota(pending=1000),
    "pause_schedule": lambda app: app.pause_schedule("old"),
    "resume_schedule": lambda app: app.resume_schedule("old"),
    "edit_schedule": lambda app: app.edit_schedule("old", missed="all"),
    "trigger_schedule": lambda app: app.trigger_schedule("old", id="t-1"),
}


@pytest.mark.parametrize("verb", list(AGAIN))
async def test_what_sets_something_is_no_error_the_second_time(make_app: MakeApp, verb: str) -> None:
    """safe-17: there is as much as after the first call."""
    async with make_app(one) as app:
        await app.create_schedule("old", every=3600, job=one(1))
        await AGAIN[verb](app)
        jobs = await app.count()
        await AGAIN[verb](app)
        assert await app.count() == jobs


async def _answered(call: Awaitable[Any]) -> str:
    try:
        answer = await call
    except RopewalkError as error:
        return type(error).__name__
    if isinstance(answer, JobInfo):
        return "the job"
    return str(answer.status if isinstance(answer, CancelResult | RetryResult) else answer)


async def _shown(app: App, job_id: str) -> tuple[State | None, list[str]]:
    return (await app.states([job_id])).get(job_id), [each.name for each in await app.schedules()]


def _documented() -> dict[str, str]:
    rows = re.findall(r"^\| `(\w+)` \| `?([^`|]+?)`? \|", PAGE.read_text().split("## Call again", 1)[1], re.M)
    return dict(rows)
