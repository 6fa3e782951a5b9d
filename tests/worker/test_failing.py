"""How attempts fail and what follows: retries, classification, timeouts, deadlines, compensation."""

from __future__ import annotations

import asyncio
import math
import sys
import threading
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import pytest

from ropewalk import Abort, AppDefaults, Backoff, Context, Defer, Event, Job, JobFailed, Retry, State, batch_job, job
from ropewalk.definitions.options import Decision
from ropewalk.domain.failure import Category
from tests.apps import MakeApp

NOW = Backoff.constant(0)
ran: list[object] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@job(backoff=NOW)
async def fails(ctx: Context, times: int) -> int:
    ran.append(ctx.attempt)
    if len(ran) <= times:
        raise ValueError(f"no {len(ran)}")
    return ctx.attempt


async def test_errors_are_retried_until_it_works(make_app: MakeApp) -> None:
    app = make_app(fails)
    async with app.running():
        assert await app.enqueue(fails(times=2)).result(timeout=5) == 3


async def test_exhausted_attempts_end_in_the_dead_letter(make_app: MakeApp) -> None:
    app = make_app(fails)
    async with app.running():
        handle = await app.enqueue(fails(times=99))
        with pytest.raises(JobFailed, match="dead_letter: ValueError no 3") as caught:
            await handle.result(timeout=5)
        assert caught.value.state == "dead_letter"
        failure = await app.failure(handle.id, all_attempts=True)
    assert [each.ended for each in failure.attempts] == ["retry", "retry", "bury"]
    assert failure.error is not None
    assert failure.error.category is Category.TEMPORARY
    assert failure.error.traceback is not None
    assert "in fails" in failure.error.traceback
    assert failure.error.worker is not None
    assert failure.error.duration_us is not None


async def test_events_tell_of_every_failed_attempt(make_app: MakeApp) -> None:
    """Whoever counts failures hears of the last one, too, and then that nothing more will be tried."""
    heard: list[Event] = []
    app = make_app(fails, on_event=heard.append)
    async with app.running():
        handle = await app.enqueue(fails(times=99), max_attempts=2)
        with pytest.raises(JobFailed):
            await handle.result(timeout=5)
    assert [(each.kind, each.attempt, each.will_retry) for each in heard if each.kind not in ("queued", "started")] == [
        ("failed", 1, True),
        ("failed", 2, False),
        ("dead_lettered", 2, None),
    ]
    assert [each.error and each.error.message for each in heard][-2:] == ["no 2", "no 2"]


async def test_events_tell_of_a_failure_that_leaves_no_time_for_a_retry(make_app: MakeApp) -> None:
    heard: list[Event] = []
    app = make_app(fails, on_event=heard.append)
    async with app.running():
        handle = await app.enqueue(fails(times=99), backoff=Backoff.constant(3600), ttl=60)
        with pytest.raises(JobFailed, match="deadline exceeded"):
            await handle.result(timeout=5)
    told = [(each.kind, each.will_retry, each.error and each.error.message) for each in heard[-2:]]
    assert told == [("failed", False, "no 1"), ("expired", None, "deadline exceeded")]


async def test_backoff_delays_the_retry(make_app: MakeApp) -> None:
    app = make_app(fails)
    async with app.running():
        handle = await app.enqueue(fails(times=1), backoff=Backoff.constant(3600))
        while (await handle.status()).state is not State.RETRYING:
            await asyncio.sleep(0.01)
        why = await app.why(handle.id)
        assert why.cause == "retrying"
        assert "no 1" in why.explanation
        await app.trigger(handle.id)
        assert await handle.result(timeout=5) == 2


@job(backoff=lambda attempt: 0 if attempt < 3 else 3600, max_attempts=5)
async def custom_backoff(ctx: Context) -> int:
    if ctx.attempt < 3:
        raise ValueError("again")
    return ctx.attempt


async def test_a_custom_backoff_function(make_app: MakeApp) -> None:
    app = make_app(custom_backoff)
    async with app.running():
        assert await app.enqueue(custom_backoff()).result(timeout=5) == 3


@job(max_attempts=2, backoff=Backoff.constant(3600))
async def decides(ctx: Context, how: str) -> int:
    ran.append(ctx.attempt)
    if len(ran) > 1:
        return ctx.attempt
    match how:
        case "retry":
            raise Retry("soon", after=0)
        case "defer":
            raise Defer(delay=0)
        case "defer_at":
            raise Defer(at=datetime.now(UTC))
        case "abort":
            raise Abort(ValueError("enough"))
        case "exit":
            sys.exit(3)
        case "nonsense":
            raise Defer(delay=math.nan)
        case "late":
            raise Defer(delay=-5)
        case "retry_late":
            raise Retry("at once", after=timedelta(seconds=-5))
        case _:
            raise AssertionError(how)


@pytest.mark.parametrize(
    ("how", "attempt"), [("retry", 2), ("defer", 1), ("defer_at", 1), ("late", 1), ("retry_late", 2)]
)
async def test_handlers_decide_outcomes(make_app: MakeApp, how: str, attempt: int) -> None:
    app = make_app(decides)
    async with app.running():
        assert await app.enqueue(decides(how=how)).result(timeout=5) == attempt


async def test_a_time_that_makes_no_sense_is_an_error_of_the_job(make_app: MakeApp) -> None:
    app = make_app(decides, fails)
    async with app.running(concurrency=1):
        with pytest.raises(JobFailed, match="delay=nan is not a duration"):
            await app.enqueue(decides(how="nonsense"), max_attempts=1).result(timeout=5)
        ran.clear()
        assert await app.enqueue(fails(times=0)).result(timeout=5) == 1


async def test_abort_fails_at_once(make_app: MakeApp) -> None:
    app = make_app(decides)
    async with app.running():
        with pytest.raises(JobFailed, match="failed: ValueError enough"):
            await app.enqueue(decides(how="abort")).result(timeout=5)
    assert ran == [1]


async def test_sys_exit_is_an_error_of_the_job_not_of_the_worker(make_app: MakeApp) -> None:
    app = make_app(decides, fails)
    async with app.running():
        with pytest.raises(JobFailed, match="SystemExit"):
            await app.enqueue(decides(how="exit"), max_attempts=1).result(timeout=5)
        ran.clear()
        assert await app.enqueue(fails(times=0)).result(timeout=5) == 1


class Evil(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even a message")


@job(max_attempts=1)
async def perverse(how: str) -> None:
    if how == "evil":
        raise Evil
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)


@pytest.mark.parametrize("how", ["evil", "cancels its own task"])
async def test_a_slot_never_dies_of_a_job(make_app: MakeApp, how: str) -> None:
    app = make_app(perverse, fails)
    async with app.running(concurrency=1):
        for _ in range(3):
            with pytest.raises(JobFailed):
                await app.enqueue(perverse(how=how)).result(timeout=5)
        assert await app.enqueue(fails(times=0)).result(timeout=5) == 1


def classify(error: BaseException) -> Decision:
    if isinstance(error, KeyError):
        return "abort"
    if isinstance(error, ValueError):
        return 0.0
    raise RuntimeError("the classifier is broken")


@job(max_attempts=2, backoff=NOW, decide=classify)
async def classified(ctx: Context, kind: str) -> int:
    ran.append(ctx.attempt)
    if len(ran) == 1:
        raise {"key": KeyError, "value": ValueError, "type": TypeError}[kind](kind)
    return ctx.attempt


async def test_the_classifier_decides(make_app: MakeApp) -> None:
    reported: list[str] = []
    app = make_app(classified, on_error=lambda error, phase: reported.append(f"{phase}: {error}"))
    async with app.running():
        with pytest.raises(JobFailed, match="failed: KeyError"):
            await app.enqueue(classified(kind="key")).result(timeout=5)
        ran.clear()
        assert await app.enqueue(classified(kind="value")).result(timeout=5) == 1
        ran.clear()
        assert await app.enqueue(classified(kind="type")).result(timeout=5) == 2
    assert reported == ["decide of classified: the classifier is broken"]


def final_at_the_second(_error: BaseException, attempt: int) -> Decision:
    return "abort" if attempt == 2 else "retry"


@job(backoff=NOW, max_attempts=5, decide=final_at_the_second)
def judged_in_a_thread() -> None:
    raise ValueError("no")


@batch_job(backoff=NOW, max_wait=0, max_attempts=5, decide=final_at_the_second)
async def judged_one_by_one(items: list[str]) -> list[str | Exception]:
    return [ValueError(item) for item in items]


@pytest.mark.parametrize("given", [judged_in_a_thread(), judged_one_by_one("a")])
async def test_a_classifier_is_told_the_attempt(make_app: MakeApp, given: Job[Any, Any]) -> None:
    app = make_app(judged_in_a_thread, judged_one_by_one)
    async with app.running():
        handle = await app.enqueue(given.again())
        with pytest.raises(JobFailed, match="failed: ValueError"):
            await handle.result(timeout=5)
        assert (await handle.status()).attempt == 2


@job(backoff=NOW)
def fails_in_a_thread(kind: str) -> None:
    raise {"key": KeyError, "value": ValueError}[kind](kind)


@batch_job(backoff=NOW, max_wait=0)
async def fails_among_others(items: list[str]) -> list[str | Exception]:
    return [KeyError(item) for item in items]


def key_errors_are_final(error: BaseException) -> Decision:
    return "abort" if isinstance(error, KeyError) else None


async def test_the_classifier_of_the_app(make_app: MakeApp) -> None:
    types = (fails, fails_in_a_thread, fails_among_others, classified)
    app = make_app(*types, defaults=AppDefaults.of(decide=key_errors_are_final))
    async with app.running():
        for failing in (fails_in_a_thread("key"), fails_among_others("one")):
            with pytest.raises(JobFailed, match="failed: KeyError"):
                await app.enqueue(failing).result(timeout=5)
        with pytest.raises(JobFailed, match="dead_letter: ValueError"):
            await app.enqueue(fails_in_a_thread("value")).result(timeout=5)
        assert await app.enqueue(fails(times=1)).result(timeout=5) == 2


@job(max_attempts=3, backoff=NOW, retry_on=(OSError,), abort_on=(FileNotFoundError,))
async def picky(ctx: Context, kind: str) -> None:
    ran.append(ctx.attempt)
    raise {"os": OSError, "missing": FileNotFoundError, "value": ValueError}[kind]("x")


@pytest.mark.parametrize(
    ("kind", "state", "attempts"), [("os", "dead_letter", 3), ("missing", "failed", 1), ("value", "failed", 1)]
)
async def test_retry_on_and_abort_on(make_app: MakeApp, kind: str, state: str, attempts: int) -> None:
    app = make_app(picky)
    async with app.running():
        with pytest.raises(JobFailed) as caught:
            await app.enqueue(picky(kind=kind)).result(timeout=5)
    assert (caught.value.state, len(ran)) == (state, attempts)


@job(timeout=0.1, max_attempts=2, backoff=NOW)
async def sleeps(seconds: float) -> str:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        ran.append("cancelled")
        raise
    return "done"


async def test_a_timeout_stops_an_async_handler(make_app: MakeApp) -> None:
    app = make_app(sleeps)
    async with app.running(concurrency=1):
        handle = await app.enqueue(sleeps(seconds=60))
        with pytest.raises(JobFailed, match=r"dead_letter.*timeout of 0.1 s"):
            await handle.result(timeout=5)
        failure = await app.failure(handle.id)
        assert failure.error is not None
        assert failure.error.category is Category.TIMEOUT
        assert await app.enqueue(sleeps(seconds=0)).result(timeout=5) == "done"
    assert ran == ["cancelled", "cancelled"]


release = threading.Event()


@job(timeout=0.1, max_attempts=1)
def blocks() -> None:
    release.wait(10)


async def test_a_timeout_settles_a_thread_but_its_slot_stays_taken(make_app: MakeApp) -> None:
    release.clear()
    app = make_app(blocks, fails)
    async with app.running(concurrency=1):
        with pytest.raises(JobFailed, match="timeout"):
            await app.enqueue(blocks()).result(timeout=5)
        waiting = await app.enqueue(fails(times=0))
        await asyncio.sleep(0.2)
        assert (await waiting.status()).state is State.SCHEDULED
        release.set()
        assert await waiting.result(timeout=5) == 1


async def test_a_deadline_ends_a_running_job(make_app: MakeApp) -> None:
    app = make_app(sleeps)
    async with app.running():
        handle = await app.enqueue(sleeps(seconds=60), timeout=60, ttl=0.2)
        with pytest.raises(JobFailed, match="deadline exceeded"):
            await handle.result(timeout=5)
        assert (await handle.status()).state is State.DEAD_LETTER


async def test_a_deadline_ends_a_waiting_job(make_app: MakeApp) -> None:
    app = make_app(fails)
    async with app:
        handle = await app.enqueue(fails(times=0), deadline=datetime.now(UTC) + timedelta(seconds=0.05))
        await asyncio.sleep(0.1)
        async with app.worker():
            with pytest.raises(JobFailed, match="deadline exceeded"):
                await handle.result(timeout=5)
    assert ran == []


@job
async def refund(ctx: Context, order: str) -> None:
    origin = ctx.compensates
    assert origin is not None
    assert origin.arguments is not None
    ran.append(("refund", order, origin.id, origin.error.message, origin.arguments["amount"]))


@job(max_attempts=1, on_failure=refund)
async def charge(order: str, amount: int) -> None:
    raise ValueError("card declined")


async def test_compensation_runs_once_with_what_it_needs(make_app: MakeApp) -> None:
    app = make_app(charge, refund)
    async with app.running() as worker:
        handle = await app.enqueue(charge(order="o-1", amount=5), workflow_id="w-1", correlation_id="c-1")
        with pytest.raises(JobFailed):
            await handle.result(timeout=5)
        await asyncio.wait_for(worker.idle(), 10)
        flow = await app.workflow("w-1")
    assert ran == [("refund", "o-1", handle.id, "card declined", 5)]
    assert [(each.type, each.state, each.correlation_id) for each in flow] == [
        ("charge", State.DEAD_LETTER, "c-1"),
        ("refund", State.COMPLETED, "c-1"),
    ]


@job
async def odd_result() -> int:
    return "not an int"  # type: ignore[return-value] # pyright: ignore[reportReturnType] # that is the point


async def test_a_result_that_does_not_fit_fails_the_job(make_app: MakeApp) -> None:
    app = make_app(odd_result)
    async with app.running():
        handle = await app.enqueue(odd_result())
        with pytest.raises(JobFailed):
            await handle.result(timeout=5)
        failure = await app.failure(handle.id)
        assert failure.error is not None
        assert (failure.state, failure.error.code) == (State.FAILED, "bad_result")


class Grade(Enum):
    GOOD = "good"


class Mark(Enum):
    GOOD = "good"


@job
async def graded(score: float, at: datetime) -> tuple[datetime, float, None]:
    return at, score, None


@job
async def misgraded() -> Grade:
    return Mark.GOOD  # type: ignore[return-value] # pyright: ignore[reportReturnType] # that is the point


async def test_what_is_stored_as_completed_can_be_read(make_app: MakeApp) -> None:
    app = make_app(graded, misgraded)
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC)
    async with app.running():
        at, score, _ = await (await app.enqueue(graded(math.nan, noon))).result(timeout=5)
        assert (at, str(score)) == (noon, "nan")
        with pytest.raises(JobFailed, match=r"would come back as another value of type Grade, given <Mark.GOOD"):
            await app.enqueue(misgraded()).result(timeout=5)
