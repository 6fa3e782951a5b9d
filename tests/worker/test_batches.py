"""Batch types: gathered, run together, settled one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ropewalk import App, JobCancelled, JobFailed, Result, State, job
from ropewalk.definitions.job_types.batch_decorator import batch_job
from ropewalk.definitions.job_types.batch_items import Batch
from ropewalk.domain.jobs.operations import UpdateRequest
from ropewalk.errors import Abort
from ropewalk.observe.events import Event
from ropewalk.worker.worker import Worker
from tests.apps import MakeApp

calls: list[list[object]] = []
gates: list[asyncio.Event] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    calls.clear()
    gates[:] = [asyncio.Event()]


@batch_job(size=10, max_wait=0.2)
async def double(numbers: list[int]) -> Sequence[int]:
    calls.append(list(numbers))
    return [number * 2 for number in numbers]


@batch_job(size=5, max_wait=0.02, executor="thread")
def double_in_a_thread(numbers: list[int]) -> Sequence[int]:
    calls.append(list(numbers))
    return [number * 2 for number in numbers]


@batch_job(size=10, max_wait=0.02, max_attempts=1)
async def picky(batch: Batch[int]) -> Sequence[int | Exception]:
    calls.append([context.id for context in batch.contexts])
    return [Abort("negative") if item < 0 else item for item in batch.items]


@batch_job(size=10, max_wait=0.02, max_attempts=1)
async def forgets_one(numbers: list[int]) -> Sequence[int]:
    return numbers[1:]


def adds_up(so_far: int | None, more: int) -> int:
    return (so_far or 0) + more


@batch_job(size=10, max_wait=0.2, max_attempts=1)
async def gives_some(batch: Batch[int]) -> dict[int, Result[int, int] | Exception]:
    """Nothing for 1, and for 2 an exception."""
    outputs: dict[int, Result[int, int] | Exception] = {}
    for at, (item, context) in reversed(list(enumerate(zip(batch.items, batch.contexts, strict=True)))):
        if item != 1:
            outputs[at] = Abort("two") if item == 2 else context.result(10 * item, append=adds_up)
    return outputs


@batch_job(size=10, max_wait=0.02)
async def fans(batch: Batch[int]) -> Sequence[Result[None, int]]:
    return [context.queue(double(item)) for item, context in zip(batch.items, batch.contexts, strict=True)]


@batch_job(size=10, max_wait=0.02, max_attempts=1)
async def held(numbers: list[int]) -> Sequence[int]:
    calls.append(list(numbers))
    await gates[0].wait()
    return numbers


@batch_job(size=100, max_wait=60)
async def patient(numbers: list[int]) -> Sequence[int]:
    calls.append(list(numbers))
    return numbers


@batch_job(size=10, max_wait=0.02)
async def waited(batch: Batch[int]) -> Sequence[int]:
    results = [context.dependencies[0].result for context in batch.contexts]
    return [item + result for item, result in zip(batch.items, results, strict=True)]


@job
async def single(number: int) -> int:
    return number


ALL = (double, double_in_a_thread, picky, forgets_one, gives_some, fans, held, patient, waited, single)


async def test_a_batch_is_larger_than_the_slots_and_never_over_its_size(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running(concurrency=3):
        handles = await app.enqueue_many([double(number) for number in range(20)])
        assert [await handle.result(timeout=10) for handle in handles] == [number * 2 for number in range(20)]
    assert sorted(len(call) for call in calls) == [10, 10]


async def test_what_is_gathered_waits_only_so_long(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        assert await app.enqueue(double(1)).result(timeout=10) == 2
    assert calls == [[1]]


async def test_sync_handlers_run_in_a_thread(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        handles = await app.enqueue_many([double_in_a_thread(number) for number in range(7)])
        assert [await handle.result(timeout=10) for handle in handles] == [number * 2 for number in range(7)]
    assert max(len(call) for call in calls) <= 5


async def test_batches_mix_neither_tenants_nor_queues(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app:
        acme = app.tenant("acme")
        handles = [
            *await app.enqueue_many([double(1), double(2)]),
            *await acme.enqueue_many([double(3)]),
            *await app.enqueue_many([double(4)], queue="other"),
        ]
        async with app.worker():
            for handle in handles:
                await handle.result(timeout=10)
    assert sorted(sorted(str(each) for each in call) for call in calls) == [["1", "2"], ["3"], ["4"]]


async def test_an_item_fails_alone_and_contexts_are_those_of_the_items(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app:
        good, bad = await app.enqueue_many([picky(1), picky(-1)])
        async with app.worker():
            assert await good.result(timeout=10) == 1
            with pytest.raises(JobFailed, match="negative"):
                await bad.result(timeout=10)
    assert sorted(str(each) for call in calls for each in call) == sorted([good.id, bad.id])


async def test_a_wrong_count_fails_all_naming_both_numbers(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app:
        handles = await app.enqueue_many([forgets_one(number) for number in range(3)])
        async with app.worker():
            for handle in handles:
                with pytest.raises(JobFailed, match="3 items and returned 2 outputs"):
                    await handle.result(timeout=10)


async def test_of_outputs_by_position_what_is_missing_fails_alone(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app:
        handles = await app.enqueue_many([gives_some(number) for number in range(4)])
        async with app.worker():
            assert await handles[0].result(timeout=10) == 0
            assert await handles[3].result(timeout=10) == 30
            for handle, told in (
                (handles[1], "gives_some returned no output for the item at position"),
                (handles[2], "two"),
            ):
                with pytest.raises(JobFailed, match=told):
                    await handle.result(timeout=10)
            assert await handles[3].group(timeout=10) == 30, "the function of append= is folded for the right item"


async def test_an_items_result_queues_under_that_item(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        handles = await app.enqueue_many([fans(1), fans(2)])
        assert [await handle.group(timeout=10) for handle in handles] == [2, 4]


async def test_items_see_what_they_waited_for(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running():
        parent = await app.enqueue(single(5))
        assert await app.enqueue(waited(1), depends_on=parent).result(timeout=10) == 6


async def test_a_bad_item_is_refused_alone(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app:
        good = await app.enqueue(double(1))
        bad = await app.enqueue(double(2), delay=60)
        await app._app_state.store.update("default", bad.id, UpdateRequest(input=b'"two"', run_now=True))
        async with app.worker():
            assert await good.result(timeout=10) == 2
            with pytest.raises(JobFailed, match="does not fit"):
                await bad.result(timeout=10)


async def test_losing_one_item_drops_only_its_output(make_app: MakeApp) -> None:
    heard: list[Event] = []
    app = make_app(*ALL, on_event=heard.append)
    async with app:
        first, second, third = await app.enqueue_many([held(1), held(2), held(3)])
        async with app.worker():
            await _called()
            await app.complete(first.id, 100)
            await app.cancel(second.id, force=True)
            await _stopped(app, 2)
            gates[0].set()
            assert await third.result(timeout=10) == 3
            assert await first.result(timeout=10) == 100
            with pytest.raises(JobCancelled):
                await second.result(timeout=10)
    assert calls == [[1, 2, 3]]


async def test_the_timeout_ends_the_call(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running(concurrency=2):
        handles = await app.enqueue_many([held(1), held(2)], timeout=0.1)
        for handle in handles:
            with pytest.raises(JobFailed, match="timeout"):
                await handle.result(timeout=10)
        assert await app.enqueue(single(5)).result(timeout=10) == 5
        assert await app.enqueue(double(5)).result(timeout=10) == 10


async def test_a_cancelled_batch_frees_its_slot(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running(concurrency=1):
        handle = await app.enqueue(held(1))
        await _called()
        await app.cancel(handle.id, force=True)
        with pytest.raises(JobCancelled):
            await handle.result(timeout=10)
        assert await app.enqueue(single(5)).result(timeout=10) == 5


async def test_a_drain_runs_what_is_gathered_and_gives_back_what_does_not_end(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app:
        gathered = await app.enqueue(patient(1))
        stuck = await app.enqueue(held(2))
        async with app.worker(grace=0.1):
            await _until(app, gathered.id, State.RUNNING)
            await _called()
        assert (await app.get(gathered.id)).state is State.COMPLETED
        info = await app.get(stuck.id)
        assert (info.state, info.attempt) == (State.SCHEDULED, 0)
    assert calls == [[2], [1]]


async def _until(app: App, job_id: str, state: State) -> None:
    async with asyncio.timeout(10):
        while (await app.get(job_id)).state is not state:
            await asyncio.sleep(0.01)


async def _called() -> None:
    """Until a handler was called."""
    async with asyncio.timeout(10):
        while not calls:
            await asyncio.sleep(0.01)


async def _stopped(app: App, count: int) -> None:
    """Until so many of the running worker's attempts know that they have to stop."""
    [worker] = app._app_state._workers
    assert isinstance(worker, Worker) and worker._parts is not None
    async with asyncio.timeout(10):
        while sum(each.stopped is not None for each in worker._parts.executor.running) < count:
            await asyncio.sleep(0.01)


async def test_a_batch_fills_up_where_there_is_one_slot(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app:
        handles = await app.enqueue_many([patient(number) for number in range(100)])
        async with app.worker(concurrency=1):
            assert [await handle.result(timeout=10) for handle in handles] == list(range(100))
    assert calls == [list(range(100))]


async def test_a_batch_that_is_gathered_keeps_no_slot_from_other_jobs(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running(concurrency=1):
        gathered = await app.enqueue(patient(1))
        await _until(app, gathered.id, State.RUNNING)
        assert await app.enqueue(single(5)).result(timeout=10) == 5
        assert calls == []


async def test_a_batch_whose_time_is_up_waits_for_a_slot(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app.running(concurrency=1):
        first = await app.enqueue(double(1))
        await _until(app, first.id, State.RUNNING)
        second = await app.enqueue(held(2), queue="other")
        third = await app.enqueue(double(3))
        await _called()
        gates[0].set()
        assert await third.result(timeout=10) == 6
        assert await second.result(timeout=10) == 2
        assert await first.result(timeout=10) == 2
    assert calls == [[2], [1, 3]]


async def test_a_gathered_batch_that_finds_no_slot_is_given_back(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app:
        gathered = await app.enqueue(patient(1))
        async with app.worker(concurrency=1, grace=0.1):
            await _until(app, gathered.id, State.RUNNING)
            await app.enqueue(held(2))
            await _called()
        info = await app.get(gathered.id)
        assert (info.state, info.attempt) == (State.SCHEDULED, 0)
    assert calls == [[2]]


async def test_an_idle_worker_has_started_what_nothing_can_fill(make_app: MakeApp) -> None:
    app = make_app(*ALL)
    async with app:
        await app.enqueue_many([patient(1), patient(2)])
        async with app.worker() as worker, asyncio.timeout(10):
            await worker.idle()
    assert calls == [[1, 2]]
