"""Classifies what a handler raised: which outcome its attempt has, by the options of its type and then of its app.

It runs where the handler ran, in the worker or in a handler's process, because only there the exception exists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Any, TypeAlias, cast

from ropewalk.definitions.handler_exceptions import BAD_RESULT, AbortWithCode, Nondeterministic, Suspend
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.option_checks import takes_attempt
from ropewalk.definitions.options import Classifier, TypeOptions
from ropewalk.domain.failure import Category, ErrorInfo, clipped
from ropewalk.domain.jobs.outcome import Aborted, Deferred, Errored, Misfit, Outcome, Suspended
from ropewalk.domain.shown_errors import safe_error_text, traceback_text
from ropewalk.domain.shown_values import shown
from ropewalk.domain.time import to_delay, to_instant
from ropewalk.domain.user_calls import guarded
from ropewalk.errors import Abort, Defer, InvalidInput, Retry, TransactionNotCompleted

Reporter: TypeAlias = Callable[[BaseException, str], object]
"""A function that reports an error that changes no outcome, with the name of what failed."""


def classify(
    error: BaseException,
    job_type: JobType[..., Any, Any],
    report: Reporter,
    *,
    attempt: int,
    app_decide: Classifier | None,
    secrets: Collection[str] = (),
) -> Outcome:
    """The outcome of an attempt whose handler raised this error.

    Retry, Defer, Abort and Suspend decide for themselves. Then the type's `decide`, `abort_on` and `retry_on` decide in
    turn, and then the app's `decide`, if the type has neither `decide` nor `retry_on`. Any other error is retried.

    It never raises: a time in Retry or Defer that makes no sense is an error of the handler like any other. `secrets`
    are names whose values are hidden in the error that is stored.
    """
    classifier_name = f"decide of {job_type.name}"
    return classify_by(
        job_type.options, classifier_name, error, report, attempt=attempt, app_decide=app_decide, secrets=secrets
    )


def classify_by(
    rules: TypeOptions,
    classifier_name: str,
    error: BaseException,
    report: Reporter,
    *,
    attempt: int,
    app_decide: Classifier | None = None,
    secrets: Collection[str] = (),
) -> Outcome:
    """The outcome by these rules, as for `classify`. `classifier_name` is the name of their `decide` in reports."""
    try:
        stated = _stated_outcome(only_leaf(error), secrets)
        if stated is not None:
            return stated
        return _outcome_by_rules(
            error, rules, classifier_name, report, attempt=attempt, app_decide=app_decide, secrets=secrets
        )
    except InvalidInput as wrong:
        return Errored(error_info(wrong, secrets=secrets))


def bad_input(error: InvalidInput) -> Misfit:
    """The outcome if the arguments do not fit the code here; they may fit the code of another worker."""
    return Misfit(error_info(error, Category.PERMANENT, code="bad_input"))


def bad_result(error: InvalidInput) -> Outcome:
    """The outcome if the result does not fit: the job fails for good, because it will not fit next time either."""
    return Aborted(error_info(error, Category.PERMANENT, code=BAD_RESULT))


def never_awaited(problem: str) -> Outcome:
    """The outcome if the handler forgot to await a call: the job fails for good, because it would forget it again."""
    return Aborted(error_info(RuntimeError(problem), Category.PERMANENT, code="never_awaited"))


def error_info(
    error: BaseException,
    category: Category = Category.TEMPORARY,
    *,
    code: str | None = None,
    secrets: Collection[str] = (),
) -> ErrorInfo:
    """An exception as it is stored, with the secrets in its arguments hidden; `secrets` are more names to hide."""
    trace = _trace(error, secrets)
    return ErrorInfo(
        category=category,
        code=code,
        type=type(error).__name__,
        message=clipped(safe_error_text(error, secrets)),
        traceback=clipped(trace),
    )


def _trace(error: BaseException, secrets: Collection[str]) -> str:
    try:
        return guarded(traceback_text, error, secrets)
    except Exception as broken:
        return f"<its traceback raised {type(broken).__name__}>"


def _stated_outcome(error: BaseException, secrets: Collection[str]) -> Outcome | None:
    """The outcome that the exception itself demands; None for an ordinary exception."""
    match error:
        case Retry():
            return Errored(
                error_info(error, secrets=secrets), None if error.after is None else to_delay(error.after, "after")
            )
        case Defer():
            if error.at is not None:
                return Deferred(at=to_instant(error.at, "at"))
            return Deferred(delay_us=to_delay(error.delay or 0, "delay"))
        case Suspend():
            return Suspended(error.suspension)
        case Nondeterministic():
            return Aborted(error_info(error, Category.PERMANENT, code="nondeterministic"))
        case TransactionNotCompleted():
            return Aborted(error_info(error, Category.PERMANENT, code="not_completed", secrets=secrets))
        case AbortWithCode(cause=cause, code=code):
            return Aborted(error_info(cause, Category.PERMANENT, code=code, secrets=secrets))
        case Abort(cause=BaseException() as cause):
            return Aborted(error_info(cause, Category.PERMANENT, secrets=secrets))
        case Abort():
            return Aborted(error_info(error, Category.PERMANENT, secrets=secrets))
        case _:
            return None


def only_leaf(error: BaseException) -> BaseException:
    """The exception inside of exception groups of one, such as that of a TaskGroup; otherwise the error itself."""
    group = error
    while isinstance(error, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", error).exceptions
        if len(inside) != 1:
            return group
        error = inside[0]
    return error


def _outcome_by_rules(
    error: BaseException,
    rules: TypeOptions,
    classifier_name: str,
    report: Reporter,
    *,
    attempt: int,
    app_decide: Classifier | None,
    secrets: Collection[str],
) -> Outcome:
    if rules.decide is not None:
        stated = _outcome_by_classifier(rules.decide, error, attempt, classifier_name, report, secrets=secrets)
        if stated is not None:
            return stated
    unlisted = bool(rules.retry_on) and not isinstance(error, rules.retry_on)
    if unlisted or isinstance(error, rules.abort_on):
        return Aborted(error_info(error, Category.PERMANENT, secrets=secrets))
    # The app decides only what the type leaves open by all three of its options.
    if app_decide is not None and rules.decide is None and not rules.retry_on:
        stated = _outcome_by_classifier(app_decide, error, attempt, "decide of the app", report, secrets=secrets)
        if stated is not None:
            return stated
    return Errored(error_info(error, secrets=secrets))


def call_classifier(decide: Classifier, error: BaseException, attempt: int) -> object:
    """What the classifier returns, which may be anything, whatever its annotation says."""
    if takes_attempt(decide):
        return cast("Callable[[BaseException, int], object]", decide)(error, attempt)
    return cast("Callable[[BaseException], object]", decide)(error)


def _outcome_by_classifier(
    decide: Classifier,
    error: BaseException,
    attempt: int,
    classifier_name: str,
    report: Reporter,
    *,
    secrets: Collection[str],
) -> Outcome | None:
    """The outcome that the classifier decides for; None if it leaves the decision open.

    A classifier that raises, or returns something that means nothing, is reported and leaves the decision open. So the
    error of the handler remains the one that is recorded.
    """
    try:
        decision = guarded(call_classifier, decide, error, attempt)
    except Exception as broken:
        report(broken, classifier_name)
        return None
    try:
        return guarded(_outcome_of_decision, decision, error, classifier_name, secrets)
    except Exception as broken:
        report(broken, classifier_name)
        return None


def _outcome_of_decision(
    decision: object, error: BaseException, classifier_name: str, secrets: Collection[str]
) -> Outcome | None:
    match decision:
        case None:
            return None
        case "abort":
            return Aborted(error_info(error, Category.PERMANENT, secrets=secrets))
        case "retry":
            return Errored(error_info(error, secrets=secrets))
        case datetime() as at:
            return Deferred(at=to_instant(at, "decide"))
        case int() | float() | timedelta() as delay:
            return Deferred(delay_us=to_delay(delay, "decide"))
        case other:
            raise InvalidInput(
                f"{classifier_name} returned {shown(other)}: return 'retry', 'abort', seconds, a datetime or None"
            )
