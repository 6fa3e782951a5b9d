"""What `why` says of a job that live workers with free slots will not take."""

from __future__ import annotations

from typing import Any

import pytest

from ropewalk import job
from ropewalk.policies import RateLimited
from ropewalk.testing import FakeRuntime
from tests.apps import MakeApp, embedded_store_kind

store_kind = embedded_store_kind


@job
async def convert(path: str) -> str:
    return path


@job(concurrency=RateLimited(1, 3600))
async def notify(path: str) -> str:
    return path


@pytest.mark.parametrize(
    ("job_type", "options"),
    [(convert, {"accept": lambda offer: False}), (notify, {}), (convert, {"backpressure": lambda load: 600})],
    ids=["accept", "rate", "backpressure"],
)
async def test_it_does_not_say_that_other_jobs_come_first(
    make_app: MakeApp, job_type: Any, options: dict[str, Any]
) -> None:
    """It names what may keep a worker from taking the job."""
    runtime = FakeRuntime()
    app = make_app(convert, notify, runtime=runtime)
    async with app, app.worker(**options):
        await runtime.advance(seconds=1)
        first = await app.enqueue(job_type("first"))
        await runtime.advance(seconds=1)
        waits = await app.enqueue(job_type("second")) if (await app.get(first.id)).state == "completed" else first
        await runtime.advance(seconds=10)
        why = await app.why(waits.id)
    assert why.cause == "held_back"
    assert all(word in why.explanation for word in ("accept", "RateLimited", "backpressure"))
