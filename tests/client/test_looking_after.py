"""What people do with jobs from outside: read, search, retry, update, delete, pause."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from ropewalk import (
    Backoff,
    Conflict,
    Context,
    Filter,
    InvalidInput,
    LimitExceeded,
    NotFound,
    Order,
    RetryStatus,
    State,
    job,
)
from ropewalk.client.views.jobs import INCLUDABLE
from ropewalk.domain.workflow.dependency import Ending
from tests.apps import MakeApp

ran: list[object] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@job
async def double(number: int) -> int:
    ran.append(number)
    return number * 2


@job(max_attempts=1)
async def breaks_once(ctx: Context) -> str:
    ran.append(ctx.run)
    if ctx.run == 1:
        ctx.log.info("about to break")
        raise ValueError("broken")
    return f"run {ctx.run}"


async def test_get_shows_arguments_and_result(make_app: MakeApp) -> None:
    app = make_app(double)
    async with app.running():
        handle = await app.enqueue(double(number=21), tags={"a": "b"}, correlation_id="c")
        await handle.result(timeout=5)
        info = await app.get(handle.id)
    assert (info.type, info.state, info.attempt, info.arguments, info.result) == (
        "double",
        State.COMPLETED,
        1,
        {"number": 21},
        42,
    )
    assert (info.tags, info.correlation_id, info.terminal) == ({"a": "b"}, "c", True)
    assert info.started_at is not None
    assert info.finished_at is not None
    assert info.created_at <= info.started_at <= info.finished_at


async def test_get_includes_what_is_asked_for(make_app: MakeApp) -> None:
    app = make_app(breaks_once)
    async with app.running():
        first = await app.enqueue(breaks_once())
        await app.wait(first.id, timeout=5)
        second = await app.enqueue(breaks_once(), depends_on=first.id, when="all_done", delay=3600)
        bare = await app.get(first.id)
        assert {getattr(bare, name) for name in INCLUDABLE} == {None}

        info = await app.get(first.id, include=["history", "attempts", "logs", "dependencies", "why"])
        assert info.history == tuple(await app.history(first.id))
        assert info.attempts == (await app.failure(first.id, all_attempts=True)).attempts
        assert info.logs is not None
        assert [line.message for line in info.logs] == ["about to break"]
        assert info.dependencies == ()
        assert info.why == await app.why(first.id)

        one = await app.get(second.id, include="dependencies")
        assert one.dependencies is not None
        assert [(edge.parent, edge.child, edge.ending) for edge in one.dependencies] == [
            (first.id, second.id, Ending.FAILED)
        ]
        assert one.history is None
        assert (await app.get(second.id, include=("arguments", "result"))).arguments == {}
        with pytest.raises(InvalidInput, match=r"include='logz' must be .* did you mean 'logs'"):
            await app.get(first.id, include=["history", "logz"])  # type: ignore[list-item]
        with pytest.raises(NotFound):
            await app.get("nope", include="history")


async def test_missing_jobs_say_so(make_app: MakeApp) -> None:
    app = make_app(double)
    async with app:
        for call in (app.get, app.history, app.why, app.failure, app.trigger, app.delete):
            with pytest.raises(NotFound, match="nope"):
                await call("nope")
        assert (await app.retry("nope")).status is RetryStatus.NOT_FOUND


async def test_another_tenants_job_looks_missing(make_app: MakeApp) -> None:
    """safe-15"""
    app = make_app(double)
    async with app:
        handle = await app.tenant("acme").enqueue(double(number=1))
        assert (await app.tenant("acme").get(handle.id)).tenant == "acme"
        with pytest.raises(NotFound):
            await app.get(handle.id)
        assert await app.count() == 0
        assert (await app.retry(handle.id)).status is RetryStatus.NOT_FOUND


async def test_search_pages_through_everything(make_app: MakeApp) -> None:
    app = make_app(double)
    async with app:
        ids = [handle.id for handle in await app.enqueue_many(double(number=n) for n in range(25))]
        seen: list[str] = []
        cursor = None
        while True:
            page = await app.search(order=Order.CREATED_ASC, limit=10, cursor=cursor)
            seen.extend(info.id for info in page.jobs)
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == ids
        with pytest.raises(InvalidInput, match="limit=0"):
            await app.search(limit=0)
        with pytest.raises(InvalidInput, match="cursor"):
            await app.search(cursor="made up")


async def test_filters_take_datetimes(make_app: MakeApp) -> None:
    app = make_app(double)
    async with app:
        await app.enqueue(double(number=1))
        now = datetime.now(UTC)
        assert await app.count(Filter(created_after=now - timedelta(minutes=1), created_before=now)) == 1
        assert await app.count(Filter(created_after=now)) == 0
        with pytest.raises(InvalidInput, match="no time zone"):
            await app.count(Filter(updated_after=datetime(2026, 1, 1)))  # noqa: DTZ001 # that is the point


async def test_retry_opens_a_new_run(make_app: MakeApp) -> None:
    app = make_app(breaks_once)
    async with app.running():
        handle = await app.enqueue(breaks_once())
        info = await app.wait(handle.id, timeout=5)
        assert info.state is State.DEAD_LETTER
        answer = await app.retry(handle.id)
        assert answer.status is RetryStatus.QUEUED
        assert await handle.result(timeout=5) == "run 2"
        with pytest.raises(LimitExceeded, match="priority=99999"):
            await app.retry(handle.id, priority=99999)
        refused = await app.retry(handle.id)
        assert (refused.status, refused.reason) == (RetryStatus.NOT_RETRIABLE, "state_completed")
        kinds = [entry.kind for entry in await app.history(handle.id)]
    assert kinds == ["queued", "started", "bury", "retried", "started", "complete"]


async def test_retry_many_by_filter(make_app: MakeApp) -> None:
    app = make_app(breaks_once)
    async with app.running() as worker:
        handles = await app.enqueue_many(breaks_once() for _ in range(5))
        for handle in handles:
            await app.wait(handle.id, timeout=5)
        failed = await app.failures()
        assert len(failed.jobs) == 5
        wanted = Filter(states=(State.DEAD_LETTER,))
        assert (await app.retry_many(wanted, dry_run=True)).done == 0
        assert (await app.retry_many(wanted)).done == 5
        await asyncio.wait_for(worker.idle(), 10)
        assert {await app.handle(handle.id, breaks_once).result(timeout=5) for handle in handles} == {"run 2"}


async def test_trigger_and_update_a_waiting_job(make_app: MakeApp) -> None:
    app = make_app(double)
    async with app.running():
        handle = await app.enqueue(double(number=1), delay=3600)
        info = await app.update(
            handle.id, arguments={"number": 4}, priority=50, run_at=datetime.now(UTC) + timedelta(hours=2)
        )
        assert (info.priority, info.arguments, info.state) == (50, {"number": 4}, State.DELAYED)
        with pytest.raises(LimitExceeded, match="priority=5000"):
            await app.update(handle.id, priority=5000)
        with pytest.raises(InvalidInput):
            await app.update(handle.id, arguments={"number": "four"})
        await app.trigger(handle.id)
        assert await handle.result(timeout=5) == 8
        with pytest.raises(Conflict, match="completed"):
            await app.trigger(handle.id)


async def test_delete_only_what_is_finished(make_app: MakeApp) -> None:
    app = make_app(double)
    async with app:
        handle = await app.enqueue(double(number=1))
        with pytest.raises(Conflict, match="not finished"):
            await app.delete(handle.id)
        await handle.cancel()
        await app.delete(handle.id)
        with pytest.raises(NotFound):
            await handle.status()


async def test_a_paused_queue_waits_and_why_says_so(make_app: MakeApp) -> None:
    app = make_app(double)
    async with app.running():
        await app.pause("default")
        handle = await app.enqueue(double(number=1))
        assert (await app.why(handle.id)).cause == "paused"
        (queue,) = await app.queues()
        assert (queue.name, queue.paused, queue.counts[State.SCHEDULED]) == ("default", True, 1)
        await app.resume("default")
        assert await handle.result(timeout=5) == 2


async def test_why_names_a_missing_worker(make_app: MakeApp) -> None:
    app = make_app(double, breaks_once)
    async with app:
        handle = await app.enqueue(double(number=1))
        assert (await app.why(handle.id)).cause == "no_worker"
        async with app.worker(types=[breaks_once]):
            assert (await app.why(handle.id)).cause == "no_worker"
        delayed = await app.enqueue(double(number=1), delay=60)
        assert (await app.why(delayed.id)).cause == "delayed"


async def test_a_worker_takes_only_its_types_and_queues(make_app: MakeApp) -> None:
    app = make_app(double, breaks_once)
    async with app:
        other = await app.enqueue(breaks_once())
        elsewhere = await app.enqueue(double(number=1), queue="elsewhere")
        mine = await app.enqueue(double(number=3), queue="mine")
        async with app.worker(types=["double"], queues=["mine"]) as worker:
            assert await mine.result(timeout=5) == 6
            await asyncio.wait_for(worker.idle(), 10)
            states = await app.states([other.id, elsewhere.id])
    assert set(states.values()) == {State.SCHEDULED}


async def test_idempotency_keys(make_app: MakeApp) -> None:
    """S4, safe-12"""
    app = make_app(double)
    async with app:
        first = await app.enqueue(double(number=1), idempotency_key="k")
        again = await app.enqueue(double(number=1), idempotency_key="k")
        assert (again.id, again.duplicate) == (first.id, True)
        with pytest.raises(Conflict, match="'k'"):
            await app.enqueue(double(number=2), idempotency_key="k")
        many = await asyncio.gather(*(app.enqueue(double(number=7), idempotency_key="m") for _ in range(20)))
        assert len({handle.id for handle in many}) == 1
        assert await app.count() == 2


async def test_the_same_job_twice_is_one_job(make_app: MakeApp) -> None:
    app = make_app(double)
    async with app:
        built = double(number=1)
        first = await app.enqueue(built)
        again = await app.enqueue(built)
        assert (first.id, again.id, again.duplicate) == (built.id, built.id, True)
        other = await app.enqueue(built.again())
        assert other.id != built.id
        with pytest.raises(Conflict, match=built.id):
            await app.enqueue(double(number=2), id=built.id)


async def test_the_same_job_with_other_options_says_what_is_ignored(make_app: MakeApp) -> None:
    app = make_app(double)
    async with app:
        twice = double(number=1)
        first = await app.enqueue(twice, delay=3600, priority=5, tags={"a": "b"})
        assert (first.duplicate, first.ignored) == (False, ())
        same = await app.enqueue(twice, delay=3600, priority=5, tags={"a": "b"})
        assert (same.duplicate, same.ignored) == (True, ())
        other = await app.enqueue(twice, queue="mail", priority=9)
        assert (other.duplicate, other.ignored) == (True, ("delay", "priority", "queue", "tags"))
        [batched, fresh] = await app.enqueue_many([twice, double(number=2)], delay=3600, priority=5)
        assert (batched.ignored, fresh.ignored) == (("tags",), ())
        blocking = await asyncio.to_thread(app.sync.enqueue, twice, delay=3600, priority=5)
        assert blocking.ignored == ("tags",)
        info = await first.status()
        assert (info.priority, info.queue, info.tags) == (5, "default", {"a": "b"})


async def test_a_batch_is_all_or_nothing(make_app: MakeApp) -> None:
    """safe-3"""
    app = make_app(double)
    async with app:
        taken = await app.enqueue(double(number=1), idempotency_key="taken")
        bad = [double(number=n).using(idempotency_key="taken" if n == 2 else f"k{n}") for n in range(5)]
        with pytest.raises(Conflict):
            await app.enqueue_many(bad)
        assert [info.id for info in (await app.search()).jobs] == [taken.id]


async def test_once_is_won_once(make_app: MakeApp) -> None:
    app = make_app(double)
    async with app:
        won = await asyncio.gather(*(app.once("daily", ttl=60) for _ in range(10)))
        assert sum(won) == 1


async def test_failures_keep_what_happened(make_app: MakeApp) -> None:
    app = make_app(breaks_once)
    async with app.running():
        handle = await app.enqueue(breaks_once(), backoff=Backoff.constant(0))
        await app.wait(handle.id, timeout=5)
        page = await app.failures(Filter(error_categories=None, text="breaks"))
        assert [info.id for info in page.jobs] == [handle.id]


async def test_failures_are_counted(make_app: MakeApp) -> None:
    """O5: what went wrong, by category, code and type."""
    app = make_app(breaks_once, double)
    async with app.running():
        handles = await app.enqueue_many(breaks_once() for _ in range(3))
        handles[0] = await app.enqueue(breaks_once(), ttl=3600)
        await app.enqueue(double(number=1)).result(timeout=5)
        for info in (await app.search()).jobs:
            await app.wait(info.id, timeout=5)
        counts = await app.failure_counts()
        assert (counts.counted, counts.complete) == (4, True)
        assert counts.by_type == {"breaks_once": 4}
        assert counts.by_category == {"temporary": 4}
        assert counts.by_code == {"ValueError": 4}
        some = await app.failure_counts(limit=3)
        assert (some.counted, some.complete) == (3, False)
        assert (await app.failure_counts(Filter(types=["double"]))).counted == 0
