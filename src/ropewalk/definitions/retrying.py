"""The decision of workers whether and when to try again, as a pure function that programs can call, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, structs

from ropewalk.definitions import option_checks
from ropewalk.definitions.options import Classifier, CustomBackoff, TypeOptions
from ropewalk.definitions.results.classify import classify_by
from ropewalk.domain import checks
from ropewalk.domain.jobs import retry
from ropewalk.domain.jobs.outcome import Deferred, Errored
from ropewalk.domain.jobs.record import DEFAULT_MAX_ATTEMPTS
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.time import Span, to_datetime, to_delay


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """Decides whether and when something that failed is tried again, like the options of `@job` with the same names."""

    max_attempts: int | None = DEFAULT_MAX_ATTEMPTS
    """How many attempts there are; None means any number."""
    backoff: Backoff | CustomBackoff | None = None
    retry_on: type[BaseException] | Iterable[type[BaseException]] = ()
    abort_on: type[BaseException] | Iterable[type[BaseException]] = ()
    decide: Classifier | None = None

    def __post_init__(self) -> None:
        checks.positive_or_none(self.max_attempts, "max_attempts")
        if self.backoff is not None and not callable(self.backoff):
            option_checks.backoff(self.backoff, "backoff")
        structs.force_setattr(self, "retry_on", checks.exception_types(self.retry_on, "retry_on"))
        structs.force_setattr(self, "abort_on", checks.exception_types(self.abort_on, "abort_on"))
        if self.decide is not None:
            option_checks.classifier(self.decide, "decide")


DEFAULT_POLICY: Final = RetryPolicy()


class NextAttempt(Struct, frozen=True, kw_only=True):
    """The time of the next attempt."""

    delay: timedelta
    """How long to wait; zero if `at` names the moment."""
    at: datetime | None = None
    """The moment that `Defer(at=...)` or a classifier has named."""
    counted: bool = True
    """Whether the attempt counts. If it was put off, it does not, and the next one has the same number."""


def next_attempt(
    error: BaseException,
    attempt: int,
    policy: RetryPolicy = DEFAULT_POLICY,
    *,
    random: Callable[[], float] | None = None,
) -> NextAttempt | None:
    """When to try again after `attempt` (1 for the first) ended with `error`; None means to give up.

    A worker decides the same for a handler: `Retry`, `Defer` and `Abort` decide for themselves, then `decide`,
    `abort_on` and `retry_on` of the policy, and any other error is tried again after the backoff. No clock is read.
    `random` returns numbers from 0 to below 1, such as `random.random`, and applies the jitter of the backoff; without
    it the wait is as long as it can be. An exception of the classifier is raised here.

    >>> next_attempt(OSError(), 2, RetryPolicy(max_attempts=5, backoff=Backoff.exponential(1)))
    NextAttempt(delay=datetime.timedelta(seconds=2), at=None, counted=True)
    """
    checks.instance(error, "error", BaseException, "ValueError()")
    checks.positive(attempt, "attempt")
    checks.instance(policy, "policy", RetryPolicy, "RetryPolicy(max_attempts=5)")
    checks.function_or_none(random, "random")
    rules = TypeOptions(
        retry_on=checks.exception_types(policy.retry_on, "retry_on"),
        abort_on=checks.exception_types(policy.abort_on, "abort_on"),
        decide=policy.decide,
    )
    match classify_by(rules, "decide", error, _raise_classifier_error, attempt=attempt):
        case Deferred(_, at) if at is not None:
            return NextAttempt(delay=timedelta(), at=to_datetime(at), counted=False)
        case Deferred(delay_us, _):
            return NextAttempt(delay=timedelta(microseconds=delay_us or 0), counted=False)
        case Errored(_, after_us) if not retry.is_last(attempt, policy.max_attempts):
            wait = after_us if after_us is not None else _wait(policy.backoff, attempt, random)
            return NextAttempt(delay=timedelta(microseconds=wait))
        case _:
            return None


def _wait(backoff: Backoff | CustomBackoff | None, attempt: int, random: Callable[[], float] | None) -> Span:
    if backoff is not None and not isinstance(backoff, Backoff):
        return to_delay(backoff(attempt), "backoff")
    roll = 0.0 if random is None else checks.number(random(), "random", 0, 1)
    return retry.delay(retry.resolve(backoff), attempt, roll)


def _raise_classifier_error(error: BaseException, classifier_name: str) -> None:
    """Raise the error of a classifier to the caller. A worker would report it and go on without the classifier."""
    error.add_note(f"raised by {classifier_name} of the RetryPolicy")
    raise error
