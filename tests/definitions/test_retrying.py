"""The public retry helper: what a worker decides, as a pure function."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk import (
    Abort,
    App,
    Backoff,
    Context,
    Defer,
    NextAttempt,
    Retry,
    RetryPolicy,
    job,
    next_attempt,
)
from ropewalk.definitions.options import Decision
from ropewalk.domain.jobs.record import AttemptRecord

OOPS = OSError("oops")
LATER = datetime(2030, 1, 1, tzinfo=UTC)


def after(seconds: float, *, counted: bool = True) -> NextAttempt:
    return NextAttempt(delay=timedelta(seconds=seconds), counted=counted)


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        (RetryPolicy(), [1, 2, None, None]),
        (RetryPolicy(max_attempts=1), [None]),
        (RetryPolicy(max_attempts=None, backoff=Backoff.constant(5)), [5, 5, 5, 5]),
        (RetryPolicy(max_attempts=4, backoff=Backoff.linear(2, max=5)), [2, 4, 5, None]),
        (RetryPolicy(max_attempts=3, backoff=lambda attempt: attempt * 7), [7, 14, None]),
    ],
    ids=["built-in", "once", "for ever", "linear", "function"],
)
def test_waits_after_each_attempt(policy: RetryPolicy, waits: list[float | None]) -> None:
    answers = [next_attempt(OOPS, attempt, policy) for attempt in range(1, len(waits) + 1)]
    assert answers == [None if wait is None else after(wait) for wait in waits]


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (Retry(after=9), after(9)),
        (Retry(), after(1)),
        (Abort("no"), None),
        (Defer(delay=30), after(30, counted=False)),
        (Defer(at=LATER), NextAttempt(delay=timedelta(), at=LATER, counted=False)),
        (KeyError("k"), None),
        (ConnectionError(), after(1)),
        (TimeoutError(), None),
    ],
    ids=repr,
)
def test_what_the_error_says(error: BaseException, answer: NextAttempt | None) -> None:
    policy = RetryPolicy(retry_on=OSError, abort_on=[TimeoutError])
    assert next_attempt(error, 1, policy) == answer


def test_an_attempt_that_is_put_off_is_not_counted_and_never_the_last() -> None:
    assert next_attempt(Defer(delay=1), 99) == after(1, counted=False)
    assert next_attempt(Retry(after=1), 99) is None


@pytest.mark.parametrize(
    ("said", "answer"),
    [("retry", after(1)), ("abort", None), (8, after(8, counted=False)), (None, after(1))],
)
def test_a_classifier_is_asked_first(said: Decision, answer: NextAttempt | None) -> None:
    asked: list[int] = []

    def decide(_: BaseException, attempt: int) -> Decision:
        asked.append(attempt)
        return said

    assert next_attempt(OOPS, 1, RetryPolicy(decide=decide)) == answer
    assert asked == [1]


def test_a_classifier_that_raises_is_told() -> None:
    def broken(_: BaseException) -> Decision:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        next_attempt(OOPS, 1, RetryPolicy(decide=broken))


@given(st.integers(1, 50), st.floats(0, 1, exclude_max=True))
def test_only_the_given_random_spreads_the_wait(attempt: int, roll: float) -> None:
    policy = RetryPolicy(max_attempts=None, backoff=Backoff.exponential(1, max=60, jitter=0.5))
    whole, spread = next_attempt(OOPS, attempt, policy), next_attempt(OOPS, attempt, policy, random=lambda: roll)
    assert whole is not None
    assert spread is not None
    assert whole == next_attempt(OOPS, attempt, policy)
    assert whole.delay / 2 <= spread.delay <= whole.delay
    seeded = [next_attempt(OOPS, attempt, policy, random=random.Random(7).random) for _ in range(2)]
    assert seeded[0] == seeded[1]


@job(max_attempts=4, backoff=Backoff.linear(0.01, jitter=0), retry_on=(OSError,))
async def unlucky(ctx: Context) -> None:
    if ctx.attempt == 2:
        raise Retry(after=0.005)
    raise OOPS


async def test_a_worker_does_the_same() -> None:
    app = App("memory://", jobs=[unlucky])
    async with app.running():
        handle = await app.enqueue(unlucky())
        await app.wait(handle.id, timeout=10)
        trail = await app._app_state.store.history("default", handle.id)
    assert trail is not None
    policy = RetryPolicy(max_attempts=4, backoff=Backoff.linear(0.01, jitter=0), retry_on=(OSError,))
    errors = [OOPS, Retry(after=0.005), OOPS, OOPS]
    told = [next_attempt(error, number, policy) for number, error in enumerate(errors, 1)]
    assert [_waited(each) for each in trail.attempts] == [None if each is None else each.delay for each in told]


def _waited(attempt: AttemptRecord) -> timedelta | None:
    if attempt.next_run_at is None:
        return None
    return timedelta(microseconds=attempt.next_run_at - attempt.ended_at)
