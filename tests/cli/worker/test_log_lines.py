"""The lines of a worker's log, for people and as fields."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime
from typing import Any

from ropewalk import App, Context, Event, job
from ropewalk.cli.worker.log import line_of, record_of
from ropewalk.logging import JsonFormatter
from tests.apps import MakeApp

apps: list[App] = []


@job
async def resolved_by_somebody(ctx: Context) -> None:
    await apps[-1].complete(ctx.id)


def fields_of(event: Event) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(JsonFormatter().format(record_of(event, logging.INFO)))
    return fields


async def test_a_lost_lease_says_why_in_plain_words(make_app: MakeApp) -> None:
    lost: asyncio.Queue[Event] = asyncio.Queue()
    app = make_app(
        resolved_by_somebody, on_event=lambda event: lost.put_nowait(event) if event.kind == "lease_lost" else None
    )
    apps.append(app)
    async with app.running():
        await app.enqueue(resolved_by_somebody())
        event = await asyncio.wait_for(lost.get(), 10)
    assert type(event.message) is str
    assert "message='already_completed'" in line_of(event)
    assert "message='already_completed'" in fields_of(event)["message"]


def test_a_fire_says_of_which_schedule() -> None:
    event = Event(
        kind="schedule_fired",
        job_id="j-1",
        type="pay",
        queue="default",
        tenant="default",
        at_us=0,
        attempt=0,
        group_id="j-1",
        schedule="every night",
        fire_time=datetime(2030, 1, 2, 3, 4, tzinfo=UTC),
    )
    line = "schedule_fired type=pay job=j-1 attempt=0 schedule='every night' fire_time=2030-01-02T03:04:00+00:00"
    assert line_of(event) == line
    fields = fields_of(event)
    assert (fields["message"], fields["schedule"]) == (line, "every night")
    assert fields["fire_time"] == "2030-01-02T03:04:00+00:00"
