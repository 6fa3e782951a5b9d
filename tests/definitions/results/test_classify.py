"""Whose word counts when a handler raised: the exception's own, the type's, the app's."""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta
from typing import Any, Unpack

import pytest

from ropewalk import Abort, AppDefaults, job
from ropewalk.definitions.options import Classifier, Decision, JobTypeOptions
from ropewalk.definitions.results.classify import classify
from ropewalk.domain.jobs.outcome import Aborted, Deferred, Errored, Outcome
from ropewalk.domain.time import SECOND, to_instant
from ropewalk.errors import Defer, DefinitionError, Retry

ATTEMPT = 7
LATER = datetime(2030, 1, 1, tzinfo=UTC)


def judged(
    error: BaseException, app_decide: Classifier | None, **options: Unpack[JobTypeOptions]
) -> tuple[Outcome, list[str]]:
    @job(**options)
    async def work() -> None: ...

    troubles: list[str] = []
    outcome = classify(
        error, work, lambda wrong, phase: troubles.append(f"{phase}: {wrong}"), attempt=ATTEMPT, app_decide=app_decide
    )
    return outcome, troubles


def type_named(value: object) -> str:
    return type(value).__name__


def always(decision: Any) -> Classifier:
    def decide(_error: BaseException) -> Decision:
        return decision  # type: ignore[no-any-return] # wrong ones too

    return decide


def never(error: BaseException) -> Decision:
    raise AssertionError(f"asked about {error!r}")


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        ("abort", Aborted),
        ("retry", Errored),
        (None, Errored),
        (3, Deferred(delay_us=3 * SECOND)),
        (timedelta(seconds=3), Deferred(delay_us=3 * SECOND)),
        (LATER, Deferred(at=to_instant(LATER, "at"))),
    ],
)
def test_what_the_apps_may_say(decision: Any, expected: Any) -> None:
    outcome, troubles = judged(KeyError("k"), always(decision))
    assert outcome == expected if isinstance(expected, Deferred) else isinstance(outcome, expected)
    assert troubles == []


@pytest.mark.parametrize(
    ("of_type", "expected"),
    [
        ({"decide": always("abort")}, Aborted),
        ({"decide": always("retry")}, Errored),
        ({"decide": always(None)}, Errored),  # its None means retry_on and abort_on, as without an app
        ({"abort_on": (KeyError,)}, Aborted),
        ({"retry_on": (KeyError,)}, Errored),
        ({"retry_on": (OSError,)}, Aborted),
    ],
)
def test_the_type_beats_the_app(of_type: dict[str, Any], expected: type[Outcome]) -> None:
    outcome, troubles = judged(KeyError("k"), never, **of_type)
    assert isinstance(outcome, expected)
    assert troubles == []


def test_what_abort_on_does_not_name_is_left_to_the_app() -> None:
    assert isinstance(judged(KeyError("k"), always(3), abort_on=(OSError,))[0], Deferred)


def test_an_exception_that_says_it_itself_beats_both() -> None:
    assert isinstance(judged(Abort("no"), never)[0], Aborted)


def test_one_that_raises_is_reported_and_has_said_nothing() -> None:
    outcome, troubles = judged(KeyError("k"), never)
    assert isinstance(outcome, Errored)
    assert outcome.error.type == "KeyError"
    assert troubles == ["decide of the app: asked about KeyError('k')"]


def test_an_answer_that_is_none() -> None:
    outcome, troubles = judged(KeyError("k"), always("maybe"))
    assert isinstance(outcome, Errored)
    assert outcome.error.type == "KeyError"
    [told] = troubles
    assert told.startswith("decide of the app: decide of the app returned 'maybe': return 'retry', 'abort', seconds")


def test_it_is_given_with_the_defaults() -> None:
    assert AppDefaults.of(decide=never).decide is never
    assert AppDefaults.of().decide is None


# ── the number of the attempt ───────────────────────────────────────────────────────────────────────────────────


def of_both(_error: BaseException, attempt: int) -> Decision:
    return float(attempt)


def of_both_with_a_default(_error: BaseException, attempt: int = -1) -> Decision:
    return float(attempt)


def of_two_attempts(factor: float, _error: BaseException, number: int) -> Decision:
    return factor * number


class Rules:
    def decide(self, _error: BaseException, attempt: int) -> Decision:
        return float(attempt)

    __call__ = decide


def with_a_setting(_error: BaseException, seconds: float = 3) -> Decision:
    return seconds


def of_any(*given: object) -> Decision:
    return 3 if len(given) == 1 else "abort"


@pytest.mark.parametrize("place", ["type", "app"])
@pytest.mark.parametrize(
    ("decide", "seconds"),
    [
        (of_both, ATTEMPT),
        (of_both_with_a_default, ATTEMPT),
        (functools.partial(of_two_attempts, 2.0), 2 * ATTEMPT),
        (Rules().decide, ATTEMPT),
        (Rules(), ATTEMPT),
        (lambda _error, attempt: float(attempt), ATTEMPT),
        (with_a_setting, 3),
        (functools.partial(with_a_setting, seconds=4), 4),
        (of_any, 3),
    ],
)
def test_a_second_parameter_is_the_attempt(decide: Classifier, seconds: int, place: str) -> None:
    """One that it needs, or one of that name; what has a default of its own keeps it."""
    of_type, of_app = (decide, None) if place == "type" else (None, AppDefaults.of(decide=decide).decide)
    options: JobTypeOptions = {} if of_type is None else {"decide": of_type}
    assert judged(KeyError("k"), of_app, **options) == (Deferred(delay_us=seconds * SECOND), [])


def of_nothing() -> Decision:
    return "abort"


def of_three(_error: BaseException, _attempt: int, _job: object) -> Decision:
    return "abort"


def by_name(_error: BaseException, *, attempt: int) -> Decision:
    return "abort" if attempt else None


async def later(_error: BaseException) -> Decision:
    return "abort"


@pytest.mark.parametrize("decide", [of_nothing, of_three, by_name, later])
def test_other_functions_are_refused_where_they_are_given(decide: Any) -> None:
    told = rf"decide=<function {decide.__name__} .* must be a function of the exception, or of the exception and"
    with pytest.raises(DefinitionError, match=told):
        judged(KeyError("k"), None, decide=decide)
    with pytest.raises(DefinitionError, match=told):
        AppDefaults.of(decide=decide)


# ── in a TaskGroup ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error", [Abort("enough"), Retry("again", after=3), Defer(delay=3)], ids=type_named)
def test_what_a_task_group_wraps_alone_says_the_same(error: Exception) -> None:
    wrapped = ExceptionGroup("unhandled errors in a TaskGroup", [ExceptionGroup("and in another", [error])])
    assert told(judged(wrapped, never)[0]) == told(judged(error, never)[0])


def test_of_several_in_a_task_group_none_says_it_for_all() -> None:
    outcome, _ = judged(ExceptionGroup("unhandled errors", [Abort("enough"), KeyError("k")]), None)
    assert isinstance(outcome, Errored) and outcome.error.type == "ExceptionGroup"


def told(outcome: Outcome) -> object:
    """Without the traceback."""
    if not isinstance(outcome, Aborted | Errored):
        return outcome
    return type(outcome), outcome.error.message, outcome.error.category, getattr(outcome, "after_us", None)
