"""What a handler asks of the worker goes over the pipe and comes back, errors included."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from ropewalk import Backoff, Bounds
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.outcome import Aborted, Cancelled, Completed, Errored
from ropewalk.domain.time import to_instant
from ropewalk.runners.frames import frame_bytes_max
from ropewalk.runners.processes import ProcessPool
from tests.runners import handlers
from tests.runners.conftest import MakePool
from tests.runners.recording import CANCELLED, Recording


async def test_every_verb(pool: ProcessPool) -> None:
    attempt = Recording(handlers.asks)
    attempt.job.checkpoint = b'"of an earlier attempt"'
    outcome = await pool.run(attempt)
    assert isinstance(outcome, Completed), outcome
    assert attempt.told == [(25, "a quarter"), (50, None)]
    assert attempt.checkpoints == [{"at": datetime(2030, 1, 1, tzinfo=UTC), "seen": {1, 2}}]
    assert [(job.type, job.input, key) for job, key in attempt.spawned] == [
        ("child", b'{"number":1}', "first"),
        ("child", b'{"number":2}', None),
        ("child", b'{"number":3}', None),
    ]
    assert attempt.asked_states == ["x", "y"]
    assert attempt.asked_once == [("only", 60.0)]
    first, *others = [job.id for job, _ in attempt.spawned]
    assert outcome.result is not None
    assert msgspec.json.decode(outcome.result) == [
        "of an earlier attempt",
        True,
        first,
        others,
        {"x": "running"},
        True,
    ]


async def test_spawned_jobs_keep_their_options(pool: ProcessPool) -> None:
    attempt = Recording(handlers.spawns_with_options)
    assert await pool.run(attempt) == Completed(None)
    (first, _), (second, _), (third, _) = attempt.spawned
    assert (first.type, first.delay_us, first.backoff, first.tags, first.max_attempts) == (
        "child",
        5_000_000,
        Backoff.constant(3),
        {"a": "b"},
        None,
    )
    assert first.deadline == to_instant(datetime(2040, 1, 1, tzinfo=UTC), "deadline")
    assert first.on_failure is not None
    assert (first.on_failure.type, first.on_failure.input, first.on_failure.priority) == (
        "clean_up",
        b'{"number":9}',
        7,
    )
    assert second.on_failure is not None
    assert (second.on_failure.type, second.on_failure.input) == ("clean_up", None)
    assert third.on_failure is None


async def test_a_type_that_only_the_process_knows(pool: ProcessPool) -> None:
    attempt = Recording(handlers.spawns_unknown)
    assert isinstance(await pool.run(attempt), Completed)
    assert [job.type for job, _ in attempt.spawned] == ["stranger"]


async def test_a_refusal_is_the_same_exception_there(pool: ProcessPool) -> None:
    attempt = Recording(handlers.oversize_checkpoint)
    attempt.checkpoint_chars_max = 99
    assert await pool.run(attempt) == Completed(b'"checkpoint: over 99"')
    attempt.checkpoint_chars_max = 100
    assert await pool.run(attempt) == Completed(b'"accepted"')


async def test_a_message_over_the_bound(make_pool: MakePool) -> None:
    bounds = Bounds(payload_bytes_max=1, result_bytes_max=1, checkpoint_bytes_max=1)
    pool, bound = make_pool(bounds=bounds), frame_bytes_max(bounds)
    outcome = await pool.run(Recording(handlers.oversize_message, size=bound))
    assert isinstance(outcome, Errored)
    assert outcome.error.type == "LimitExceeded"
    assert f"over the bound of {bound:,}" in outcome.error.message
    attempt = Recording(handlers.oversize_message, size=bound - 100)
    assert await pool.run(attempt) == Completed(None)
    assert len(str(attempt.checkpoints[0])) == bound - 100


async def test_resources_live_in_the_worker(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.wants_resource))
    assert isinstance(outcome, Errored)
    assert outcome.error.type == "LookupError"
    assert "lives in the worker" in outcome.error.message


async def test_a_cooperative_cancellation_is_seen(pool: ProcessPool) -> None:
    attempt = Recording(handlers.waits_for_cancel)
    async with asyncio.timeout(10):
        running = asyncio.ensure_future(pool.run(attempt))
        await attempt.heard.wait()
        attempt.cancel = CANCELLED
        assert await running == Completed(b'"cancelled: enough"')


async def test_a_cancellation_from_before_the_start_is_seen(pool: ProcessPool) -> None:
    attempt = Recording(handlers.waits_for_cancel)
    attempt.cancel = CANCELLED
    async with asyncio.timeout(10):
        assert await pool.run(attempt) == Completed(b'"cancelled: enough"')


async def test_a_cancellation_does_not_reach_the_next_attempt(make_pool: MakePool) -> None:
    pool, attempt = make_pool(size=1), Recording(handlers.cancelled_at_checkpoint)
    attempt.cancel_at_checkpoint = True
    outcome = await pool.run(attempt)
    assert isinstance(outcome, Cancelled)
    assert outcome.error is not None
    assert outcome.error.category is Category.CANCELLED
    assert await pool.run(Recording(handlers.cancelled_at_checkpoint)) == Completed(None)


async def test_threads_of_a_handler_ask_at_the_same_time(pool: ProcessPool) -> None:
    attempt = Recording(handlers.many_threads)
    assert await pool.run(attempt) == Completed(b"8")
    assert len(attempt.asked_once) == 8


async def test_an_attempt_that_is_over_says_nothing(make_pool: MakePool) -> None:
    pool = make_pool(size=1)
    await pool.run(Recording(handlers.leaves_context))
    attempt = Recording(handlers.uses_left_context)
    outcome = await pool.run(attempt)
    assert isinstance(outcome, Completed)
    assert b"LeaseLost" in (outcome.result or b"")
    assert attempt.told == []


async def test_sync_face_is_refused_on_a_loop(pool: ProcessPool) -> None:
    outcome = await pool.run(Recording(handlers.blocks_its_loop))
    assert isinstance(outcome, Errored)
    assert "ctx.sync is for sync handlers" in outcome.error.message


@pytest.mark.parametrize("percent", [None, "half"])
async def test_nonsense_is_refused_where_it_is_said(pool: ProcessPool, percent: object) -> None:
    outcome = await pool.run(Recording(handlers.tells, percent=percent))
    assert isinstance(outcome, Errored | Aborted)
    assert "percent" in outcome.error.message
