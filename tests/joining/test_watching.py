"""O6, O7: jobs that come in a user's transaction are counted once it committed, and carry the trace of their sender."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ropewalk import App
from ropewalk.integrations.otel import OpenTelemetry
from tests.joining.conftest import on
from tests.joining.drivers import EVERY, Driver
from tests.joining.jobs import greet

pytestmark = [pytest.mark.asyncio, on(*EVERY)]


async def test_what_is_committed_is_counted(app: App, driver: Driver) -> None:
    """O6: where the driver lets us know of the commit, as for hooks."""
    await driver.enqueue(app, greet("undone"))
    await driver.rollback()
    kept = await driver.enqueue(app, greet("kept"))
    await driver.enqueue(app, greet("kept"), id=kept.id)  # a duplicate
    assert await _enqueued(app) == []
    await driver.commit()
    assert await _enqueued(app) == ([1] if driver.tells else [])


async def test_an_attempt_hangs_under_the_enqueue_in_a_transaction(app: App, driver: Driver) -> None:
    """O7: whichever thread and driver sent it; many are one sending."""
    spans = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    app._app_state.tracing = OpenTelemetry(provider)
    await driver.enqueue_many(app, [greet("ada"), greet("bob")])
    await driver.commit()
    async with app.worker() as worker:
        await worker.idle()
    finished = spans.get_finished_spans()
    [sent] = [span for span in finished if span.kind.name == "PRODUCER"]
    ran = [span for span in finished if span.kind.name == "CONSUMER"]
    assert (sent.attributes or {})["messaging.batch.message_count"] == 2
    context = sent.get_span_context()
    assert context is not None
    assert [span.parent and span.parent.span_id for span in ran] == [context.span_id] * 2


async def _enqueued(app: App) -> list[float | None]:
    [family] = [each for each in await app.metrics.snapshot() if each.name == "ropewalk_jobs_enqueued_total"]
    return [sample.value for sample in family.samples]
