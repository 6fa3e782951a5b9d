"""Nothing in the testing kit hangs: what cannot go on says which job it waits for, and why."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from ropewalk import App, Context, Defer, Group, JobType, Limit, Rate, Result, State, batch_job, job
from ropewalk.policies import RateLimited, Unlimited
from ropewalk.testing import Rehearsal, Stalled

TIMEOUT_SECONDS = 0.2

calls: list[list[int]] = []
inside: list[Rehearsal] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    calls.clear()
    inside.clear()


@batch_job(size=3, max_wait=60)
async def batched(numbers: list[int]) -> Sequence[int]:
    calls.append(list(numbers))
    return numbers


@job
async def plain(number: int) -> int:
    return number


@job
async def never_returns() -> None:
    await asyncio.Event().wait()


@job
def blocks() -> None:
    threading.Event().wait(5 * TIMEOUT_SECONDS)


@job
async def waits_for_a_child() -> int:
    return await inside[0].enqueue(plain(7)).result()


@job
async def continues_later(ctx: Context) -> Result[int, int]:
    return ctx.continue_with(plain(1).using(delay=3600))


@job
async def queues_itself(ctx: Context) -> Result[None, None]:
    return ctx.queue(queues_itself())


@job
async def defers_for_ever() -> None:
    raise Defer(delay=0)


@job
async def ends_its_slot() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


@job(limit=Limit(rate=Rate(1, per=60)))
async def rated() -> None: ...


@job(limit=Limit(concurrency=1))
async def one_at_a_time() -> None: ...


@job(concurrency=RateLimited(1, 60))
async def rated_here() -> None: ...


@job
async def naps(ctx: Context) -> None:
    await ctx.sleep(60)


@job
async def listens(ctx: Context) -> object:
    return await ctx.wait_for("word", timeout=60)


app = App(
    "memory://",
    jobs=[
        batched,
        plain,
        never_returns,
        blocks,
        waits_for_a_child,
        continues_later,
        queues_itself,
        defers_for_ever,
        ends_its_slot,
        rated,
        one_at_a_time,
        rated_here,
        naps,
        listens,
    ],
)


@pytest.fixture
def rehearsal() -> Rehearsal:
    inside.append(Rehearsal(app, timeout=TIMEOUT_SECONDS))
    return inside[0]


@pytest.mark.parametrize("concurrency", [1, 2, 10])
@pytest.mark.parametrize(("count", "sizes"), [(1, [1]), (2, [2]), (3, [3]), (7, [3, 3, 1])])
async def test_batches_run_without_time(rehearsal: Rehearsal, concurrency: int, count: int, sizes: list[int]) -> None:
    handles = await rehearsal.enqueue_many([batched(number) for number in range(count)])
    assert await rehearsal.drain(concurrency=concurrency) == count
    assert [len(call) for call in calls] == sizes
    assert [await handle.result() for handle in handles] == list(range(count))


async def test_batches_beside_other_jobs_and_tenants(rehearsal: Rehearsal) -> None:
    await rehearsal.enqueue_many([batched(1), plain(1), batched(2), plain(2)])
    await rehearsal.tenant("acme").enqueue(batched(3))
    assert await rehearsal.drain(concurrency=Unlimited()) == 5
    assert calls == [[1, 2], [3]]


async def test_run_takes_a_batch_type(rehearsal: Rehearsal) -> None:
    assert await rehearsal.run(batched(5)) == 5


async def test_a_handler_that_never_returns_is_named(rehearsal: Rehearsal) -> None:
    handle = await rehearsal.tenant("acme").enqueue(never_returns())
    with pytest.raises(Stalled, match=rf"never_returns {handle.id} of tenant acme is running: .*has not returned"):
        await rehearsal.drain()
    assert (await handle.status()).state is State.SCHEDULED


async def test_a_thread_that_never_returns_is_named(rehearsal: Rehearsal) -> None:
    await rehearsal.enqueue(blocks())
    with pytest.raises(Stalled, match=r"blocks .* is running: .*has not returned"):
        await rehearsal.drain()


async def test_a_handler_that_waits_for_a_job_needs_a_slot_for_it(rehearsal: Rehearsal) -> None:
    await rehearsal.enqueue(waits_for_a_child())
    with pytest.raises(Stalled, match=r"waits_for_a_child .* is running[\s\S]*plain .* is scheduled: it is ready"):
        await rehearsal.drain()
    assert await rehearsal.drain(concurrency=2) == 3  # the child of the attempt that was given up, too


async def test_handlers_that_wait_for_each_others_slots_see_results_at_once(rehearsal: Rehearsal) -> None:
    await rehearsal.enqueue(plain(1))
    await rehearsal.enqueue_many([waits_for_a_child() for _ in range(3)])
    assert await rehearsal.drain(concurrency=4) == 7


@pytest.mark.parametrize("job_type", [queues_itself, defers_for_ever])
async def test_a_drain_that_never_ends_says_so(rehearsal: Rehearsal, job_type: JobType[[], Any, Any]) -> None:
    await rehearsal.enqueue(job_type())
    with pytest.raises(Stalled, match=rf"attempts and there is still more[\s\S]*{job_type.name}[\s\S]*attempts_max"):
        await rehearsal.drain(attempts_max=100)


async def test_a_slot_that_a_handler_ended_is_opened_anew(rehearsal: Rehearsal) -> None:
    await rehearsal.enqueue(ends_its_slot(), max_attempts=1)
    await rehearsal.enqueue(plain(1))
    assert await rehearsal.drain() == 2


async def test_run_does_not_wait_for_a_continuation_that_comes_later(rehearsal: Rehearsal) -> None:
    with pytest.raises(AssertionError, match=r"plain has not ended: its time comes in 3600\.0 s"):
        await rehearsal.run(continues_later())


async def test_run_tells_of_a_job_of_another_tenant(rehearsal: Rehearsal) -> None:
    with pytest.raises(AssertionError, match="plain has not ended: its time comes"):
        await rehearsal.run(plain(1).using(tenant="acme", delay=60))


async def test_run_tells_of_a_pause(rehearsal: Rehearsal) -> None:
    await rehearsal.pause("default")
    with pytest.raises(AssertionError, match=r"plain has not ended: queue 'default' is paused; resume it with [^;]*$"):
        await rehearsal.run(plain(1))


@pytest.mark.parametrize("timeout", [None, 5.0])
async def test_waiting_for_what_nobody_runs_is_an_error(rehearsal: Rehearsal, timeout: float | None) -> None:
    handle = await rehearsal.enqueue(plain(1))
    for wait in (handle.result, handle.group, handle.chain):
        with pytest.raises(Stalled, match=rf"plain {handle.id} is scheduled: .*\n.*rehearsal\.drain\(\)"):
            await wait(timeout)
    with pytest.raises(Stalled):
        await rehearsal.wait(handle.id)
    with pytest.raises(Stalled):
        await rehearsal.tenant("acme").enqueue(plain(1)).result()


async def test_a_wait_lasts_as_long_as_somebody_drains(rehearsal: Rehearsal) -> None:
    waiting: asyncio.Future[object] = asyncio.ensure_future(rehearsal.enqueue(naps()).result())
    for _ in range(5):
        await asyncio.wait([waiting], timeout=TIMEOUT_SECONDS * 0.7)
        await rehearsal.drain()
        await rehearsal.advance(seconds=15)
    assert await waiting is None


async def test_what_waits_for_time_ends_a_drain(rehearsal: Rehearsal) -> None:
    """Every cause that only time, or somebody outside, takes away: the drain returns, and `why` names it."""
    await rehearsal.pause("closed")
    await rehearsal.tenant("small").set_quota(running=1, submissions=Rate(5, per=60))
    waiting = await rehearsal.enqueue_many([naps(), listens()])
    later = await rehearsal.enqueue(plain(1), delay=60)
    closed = await rehearsal.enqueue(plain(1), queue="closed")
    gated = await rehearsal.enqueue(plain(1), depends_on=Group(waiting[0]), gate_timeout=30)
    await rehearsal.tenant("small").enqueue_many([plain(1), plain(2)])
    await rehearsal.enqueue_many([one_at_a_time(), one_at_a_time()])
    rates = await rehearsal.enqueue_many([rated(), rated()])
    here = await rehearsal.enqueue_many([rated_here(), rated_here()])
    assert await rehearsal.drain(concurrency=3) == 8
    causes = [(await rehearsal.why(each.id)).cause for each in (*waiting, later, closed, gated, rates[1], here[1])]
    assert causes == ["delayed", "signal", "delayed", "paused", "dependencies", "no_worker", "no_worker"]
    await rehearsal.advance(minutes=1)
    await rehearsal.resume("closed")
    assert await rehearsal.drain(concurrency=3) == 6
    assert (await gated.status()).state is State.FAILED


async def test_inline_runs_what_any_way_of_enqueueing_brought() -> None:
    rehearsal = Rehearsal(app, inline=True)
    several = await rehearsal.enqueue_many([plain(1), batched(2)])
    other = await rehearsal.tenant("acme").enqueue(plain(3))
    for handle in (*several, other):
        assert (await handle.status()).state is State.COMPLETED
