"""What a handler's exception means for its attempt, by the options of its type, then of its app.

Runs wherever the handler ran (the worker, or its own process), because only there the exception itself exists.
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


def classify(
    error: BaseException,
    job_type: JobType[..., Any, Any],
    report: Reporter,
    *,
    attempt: int,
    app_decide: Classifier | None,
    secrets: Collection[str] = (),
) -> Outcome:
    """Retry, Defer, Abort, Suspend say it themselves; then the type's `decide`, `abort_on`, `retry_on`; then, where
    the type has no `decide`, the app's; else retry.

    Never raises: a time that makes no sense is an error of the handler like any other. `secrets` are names whose values
    are hidden in the error that is kept.
    """
    whose = f"decide of {job_type.name}"
    return classify_by(job_type.options, whose, error, report, attempt=attempt, app_decide=app_decide, secrets=secrets)


def classify_by(
    rules: TypeOptions,
    whose: str,
    error: BaseException,
    report: Reporter,
    *,
    attempt: int,
    app_decide: Classifier | None = None,
    secrets: Collection[str] = (),
) -> Outcome:
    """As `classify` does; `whose` names the rules' own `decide` for reports."""
    try:
        said = _said(only_leaf(error), secrets)
        if said is not None:
            return said
        return _classified(error, rules, whose, report, attempt=attempt, app_decide=app_decide, secrets=secrets)
    except InvalidInput as wrong:
        return Errored(error_info(wrong, secrets=secrets))


def bad_input(error: InvalidInput) -> Misfit:
    """Arguments that do not fit the code here. They may fit that of another worker, which whoever ran it finds out."""
    return Misfit(error_info(error, Category.PERMANENT, code="bad_input"))


def bad_result(error: InvalidInput) -> Outcome:
    """A result that does not fit will not fit next time either."""
    return Aborted(error_info(error, Category.PERMANENT, code=BAD_RESULT))


def never_awaited(told: str) -> Outcome:
    """The handler forgot to await what it called; it would forget again."""
    return Aborted(error_info(RuntimeError(told), Category.PERMANENT, code="never_awaited"))


def error_info(
    error: BaseException,
    category: Category = Category.TEMPORARY,
    *,
    code: str | None = None,
    secrets: Collection[str] = (),
) -> ErrorInfo:
    """An exception as data, with the secrets in its arguments hidden: `secrets` are names that are hidden, too."""
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


def _said(error: BaseException, secrets: Collection[str]) -> Outcome | None:
    """What the exception itself says. The only one in a TaskGroup speaks as if there were no TaskGroup."""
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
    """What a TaskGroup wraps, where it wraps one alone; otherwise the error itself."""
    group = error
    while isinstance(error, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", error).exceptions
        if len(inside) != 1:
            return group
        error = inside[0]
    return error


def _classified(
    error: BaseException,
    rules: TypeOptions,
    whose: str,
    report: Reporter,
    *,
    attempt: int,
    app_decide: Classifier | None,
    secrets: Collection[str],
) -> Outcome:
    if rules.decide is not None:
        said = _asked(rules.decide, error, attempt, whose, report, secrets=secrets)
        if said is not None:
            return said
    unlisted = bool(rules.retry_on) and not isinstance(error, rules.retry_on)
    if unlisted or isinstance(error, rules.abort_on):
        return Aborted(error_info(error, Category.PERMANENT, secrets=secrets))
    # A type beats its app: what it says by any of its three options is not asked again.
    if app_decide is not None and rules.decide is None and not rules.retry_on:
        said = _asked(app_decide, error, attempt, "decide of the app", report, secrets=secrets)
        if said is not None:
            return said
    return Errored(error_info(error, secrets=secrets))


def call_classifier(decide: Classifier, error: BaseException, attempt: int) -> object:
    """What the classifier answers, whatever its annotation promises."""
    if takes_attempt(decide):
        return cast("Callable[[BaseException, int], object]", decide)(error, attempt)
    return cast("Callable[[BaseException], object]", decide)(error)


def _asked(
    decide: Classifier, error: BaseException, attempt: int, whose: str, report: Reporter, *, secrets: Collection[str]
) -> Outcome | None:
    """What the classifier says; one that raises is reported and has said nothing. So is an answer that means nothing,
    or that raises when it is compared: the error of the handler stays the one that is recorded."""
    try:
        decision = guarded(call_classifier, decide, error, attempt)
    except Exception as broken:
        report(broken, whose)
        return None
    try:
        return guarded(_meant, decision, error, whose, secrets)
    except Exception as broken:
        report(broken, whose)
        return None


def _meant(decision: object, error: BaseException, whose: str, secrets: Collection[str]) -> Outcome | None:
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
            raise InvalidInput(f"{whose} returned {shown(other)}: return 'retry', 'abort', seconds, a datetime or None")
