"""What verbs tell beside their effect: how a job was accepted, what a cancellation found, who was left out and why."""

from __future__ import annotations

import asyncio

from msgspec import structs

from ropewalk import CancelStatus, Filter, State, job
from ropewalk.client.views.answers import REFUSALS_MAX, CancelResult, Refusal
from tests.apps import MakeApp

held: list[asyncio.Event] = []


@job
async def plain(number: int = 0) -> int:
    return number


@job
async def held_up() -> None:
    held[0].set()
    await held[1].wait()


@job(max_attempts=1)
async def breaks() -> None:
    raise ValueError("broken")


async def test_a_handle_says_how_its_job_was_accepted(make_app: MakeApp) -> None:
    app = make_app(plain)
    handle = await app.enqueue(plain(1), delay=60)
    info, submitted = await app.get(handle.id), handle.submission
    assert submitted is not None
    assert (submitted.state, submitted.created_at) == (State.DELAYED, info.created_at)
    assert submitted.scheduled_for == info.scheduled_for > info.created_at
    assert app.handle(handle.id, plain).submission is None


async def test_the_handle_of_a_duplicate_tells_of_the_job_that_was_there(make_app: MakeApp) -> None:
    app = make_app(plain)
    first = await app.enqueue(plain(1), delay=60)
    assert first.submission is not None
    await first.cancel()
    again = await app.enqueue(plain(1).using(id=first.id))
    assert again.duplicate
    assert again.submission == structs.replace(first.submission, state=State.CANCELLED)


async def test_blocking_handles_answer_the_same(make_app: MakeApp) -> None:
    app = make_app(plain)
    first = await app.enqueue(plain(1), delay=60)
    again = app.sync.enqueue(plain(1).using(id=first.id))
    assert again.duplicate
    assert again.submission == first.submission
    assert again.cancel() == CancelResult(job_id=first.id, status=CancelStatus.CANCELLED, previous_state=State.DELAYED)


async def test_cancel_says_which_state_it_found(make_app: MakeApp) -> None:
    app = make_app(held_up, plain)
    held[:] = [asyncio.Event(), asyncio.Event()]
    async with app.running():
        later = await app.enqueue(plain(), delay=60)
        for status, state in (
            (CancelStatus.CANCELLED, State.DELAYED),
            (CancelStatus.ALREADY_COMPLETE, State.CANCELLED),
        ):
            assert await later.cancel() == CancelResult(job_id=later.id, status=status, previous_state=state)
        running = await app.enqueue(held_up())
        await asyncio.wait_for(held[0].wait(), 10)
        asked = await app.cancel(running.id)
        assert (asked.status, asked.previous_state) == (CancelStatus.CANCEL_REQUESTED, State.RUNNING)
        held[1].set()
        missing = await app.cancel("nope")
        assert (missing.status, missing.previous_state) == (CancelStatus.NOT_FOUND, None)


async def test_bulk_verbs_name_whom_they_left_out(make_app: MakeApp) -> None:
    app = make_app(plain, breaks)
    async with app.running() as worker:
        done, broken = await app.enqueue(plain()), await app.enqueue(breaks())
        await asyncio.wait_for(worker.idle(), 10)
        waiting = await app.enqueue(plain(), delay=60)
        child = await app.enqueue(plain(), depends_on=broken, when="all_done", delay=60)
        ids = [done.id, broken.id, waiting.id, child.id, "nope"]

        deleted = await app.delete_many([broken.id, waiting.id, "nope"])
        assert _codes(deleted.refusals) == [(broken.id, "in_use"), (waiting.id, "not_terminal"), ("nope", "not_found")]
        retried = await app.retry_many([done.id, "nope", waiting.id])
        assert _codes(retried.refusals) == [
            (done.id, "state_completed"),
            ("nope", "not_found"),
            (waiting.id, "state_waiting"),
        ]
        cancelled = await app.cancel_many(ids)
        assert (cancelled.done, cancelled.skipped, cancelled.missing) == (2, 2, 1)
        assert cancelled.refusals == [
            Refusal(job_id=done.id, code="already_complete", message="the job has already ended (completed)"),
            Refusal(job_id=broken.id, code="already_complete", message="the job has already ended (dead_letter)"),
            Refusal(job_id="nope", code="not_found", message="there is no such job for this tenant"),
        ]


async def test_only_the_first_hundred_are_named(make_app: MakeApp) -> None:
    app = make_app(plain)
    ids = [f"nope-{number}" for number in range(REFUSALS_MAX + 20)]
    for result in (await app.cancel_many(ids), await app.retry_many(ids), await app.delete_many(ids)):
        assert result.missing == len(ids)
        assert [each.job_id for each in result.refusals] == ids[:REFUSALS_MAX]


async def test_a_purge_names_what_runs_and_what_is_needed(make_app: MakeApp) -> None:
    app = make_app(plain, held_up)
    held[:] = [asyncio.Event(), asyncio.Event()]
    async with app.running():
        done = await app.enqueue(plain(), queue="mine")
        await done.result(timeout=10)
        await app.enqueue(plain(), depends_on=done, delay=60, queue="other")
        running = await app.enqueue(held_up(), queue="mine")
        await asyncio.wait_for(held[0].wait(), 10)
        purged = await app.purge(Filter(queues="mine"))
        assert (purged.running, purged.needed) == (1, 1)
        assert _codes(purged.refusals) == [(running.id, "running"), (done.id, "in_use")]
        held[1].set()


def _codes(refusals: list[Refusal]) -> list[tuple[str, str]]:
    return [(each.job_id, each.code) for each in refusals]
