"""What a handler's exception means for its attempt, by the options of its type.

Runs wherever the handler ran (the worker, or its own process), because only there the exception itself exists.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from ropewalk.definitions.jobtype import JobType
from ropewalk.domain.failure import Category, ErrorInfo, clipped
from ropewalk.domain.instants import to_instant, to_span
from ropewalk.domain.outcome import Aborted, Deferred, Errored, Outcome
from ropewalk.errors import Abort, Defer, InvalidInput, Retry


def verdict(
    error: BaseException, job_type: JobType[..., Any, Any], report: Callable[[BaseException, str], object]
) -> Outcome:
    """Retry, Defer and Abort say it themselves; then the type's `decide`, `abort_on`, `retry_on`; else retry."""
    match error:
        case Retry(after=None):
            return Errored(described(error))
        case Retry(after=after):
            return Errored(described(error), to_span(after, "after"))
        case Defer():
            return _deferred(error)
        case Abort(cause=BaseException() as cause):
            return Aborted(described(cause, Category.PERMANENT))
        case Abort():
            return Aborted(described(error, Category.PERMANENT))
        case _:
            return _classified(error, job_type, report)


def bad_input(error: InvalidInput, code: str = "bad_input") -> Outcome:
    """A payload or result that does not fit will not fit next time either."""
    return Aborted(described(error, Category.PERMANENT, code=code))


def described(
    error: BaseException, category: Category = Category.TEMPORARY, *, code: str | None = None
) -> ErrorInfo:
    """An exception as data."""
    told = str(error) or type(error).__name__
    trace = "".join(traceback.format_exception(error))
    return ErrorInfo(
        category=category, code=code, type=type(error).__name__, message=clipped(told), traceback=clipped(trace)
    )


def _deferred(error: Defer) -> Outcome:
    try:
        if error.at is not None:
            if not isinstance(error.at, datetime):
                raise InvalidInput(f"Defer(at={error.at!r}) takes a datetime", field="at")
            return Deferred(at=to_instant(error.at, "at"))
        if not isinstance(error.delay, int | float | timedelta):
            raise InvalidInput(f"Defer(delay={error.delay!r}) takes seconds or a timedelta", field="delay")
        return Deferred(delay_us=to_span(error.delay, "delay"))
    except InvalidInput as wrong:
        return Errored(described(wrong))


def _classified(
    error: BaseException, job_type: JobType[..., Any, Any], report: Callable[[BaseException, str], object]
) -> Outcome:
    options = job_type.options
    decision: object = None
    if options.decide is not None:
        try:
            decision = options.decide(error)
        except Exception as broken:
            report(broken, f"decide of {job_type.name}")
    match decision:
        case "abort":
            return Aborted(described(error, Category.PERMANENT))
        case "retry":
            return Errored(described(error))
        case datetime():
            return Deferred(at=to_instant(decision, "decide"))
        case int() | float() | timedelta():
            return Deferred(delay_us=to_span(decision, "decide"))
        case None:
            pass
        case _:
            report(TypeError(f"decide returned {decision!r}"), f"decide of {job_type.name}")
    if isinstance(error, options.abort_on):
        return Aborted(described(error, Category.PERMANENT))
    if options.retry_on and not isinstance(error, options.retry_on):
        return Aborted(described(error, Category.PERMANENT))
    return Errored(described(error))
