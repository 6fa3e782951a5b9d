"""Every exception that ropewalk raises, as one tree. This module imports nothing from ropewalk.

RopewalkError
├── DefinitionError (TypeError)      a handler or an app is declared in a way that cannot work
├── UnknownJobType (LookupError)     the job type is not registered
├── InvalidInput (ValueError)        an argument, option, payload or URL that does not fit
│   └── LimitExceeded                a value exceeds a bound (names the field, the value and the bound)
├── QuotaExceeded                    the tenant has used up its quota
├── PartlyEnqueued                   some jobs of a batch with atomic=False were refused
├── Conflict                         the id or key is taken, or the state of the job does not allow the call
│   └── RevMismatch                  the job or schedule has changed since the caller read it (if_rev)
├── NotFound (LookupError)           this tenant has no such job, or the result is gone
├── JobFailed                        the awaited job ended as failed or dead_letter
├── JobCancelled                     the awaited job was cancelled (never asyncio.CancelledError)
├── GroupFailed                      the awaited group closed with failures, or its value cannot be determined
├── WaitTimeout (TimeoutError)       the timeout of a wait is over, and the job has not ended
├── LeaseLost                        this attempt no longer owns its job; the store accepts nothing more from it
├── TransactionNotCompleted          a block of ctx.transaction() ended without tx.complete(...)
├── SpawnMismatch                    a spawn key was used before with another type or input
├── UnexpectedExit                   a function that is not a handler raised SystemExit or a similar exception
├── BeyondTenant (AttributeError)    a client of one tenant was asked for something that concerns other tenants
├── Unsupported                      this store, or this kind of handler, does not support the call
├── StoreUnavailable                 the store cannot be reached or written; nothing was changed
│   └── OutcomeUnknown               something may have been changed: repeat the call with the same id
└── StoreRefused                     ropewalk must not use the store in its present condition
    ├── SchemaMismatch               the store belongs to a newer ropewalk, or to another program
    └── WeakDurability               the settings of the store could lose acknowledged jobs

Outcome (Exception, a separate tree): raised inside a handler to decide how the attempt ends
├── Retry    ├── Defer    └── Abort

NeverEnqueued (RuntimeWarning): an enqueue was built and never awaited
UnregisteredJobType (RuntimeWarning): a job was queued whose type the app does not know
UnsharedStore (RuntimeWarning): the store is the memory of one process, which other processes cannot reach
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta


class RopewalkError(Exception):
    """Base class of all exceptions that ropewalk raises, except outcomes and warnings."""


class Unsupported(RopewalkError):
    """This store, or this kind of handler, does not support the call; the message says which stores or handlers do.

    `store` names the store and `capability` the capability that it lacks. Both are None if no store is involved.
    """

    def __init__(self, message: str, *, store: str | None = None, capability: str | None = None) -> None:
        super().__init__(message)
        self.store = store
        self.capability = capability


class BeyondTenant(RopewalkError, AttributeError):
    """A client that is bound to one tenant (`app.tenant(...)`) was asked for something that concerns other tenants."""


class DefinitionError(RopewalkError, TypeError):
    """A handler, job type or app is declared in a way that cannot work."""


class UnknownJobType(RopewalkError, LookupError):
    """The job type is not registered with this app."""


class InvalidInput(RopewalkError, ValueError):
    """An argument, option, payload or URL does not fit; `field` names it."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class LimitExceeded(InvalidInput):
    """A value exceeds a configured bound."""


class QuotaExceeded(RopewalkError):
    """The tenant has used up its quota. `limit` names the part of the quota; `retry_after` is in seconds, and None if
    waiting does not help."""

    def __init__(self, message: str, *, limit: str, current: int, maximum: int, retry_after: float | None) -> None:
        super().__init__(message)
        self.limit = limit
        self.current = current
        self.maximum = maximum
        self.retry_after = retry_after


class PartlyEnqueued(RopewalkError):
    """Some jobs of `enqueue_many(..., atomic=False)` were refused, and the others are queued.

    `results` has a handle or an error for each job, in the order of the call; `refused` has only the errors, by the
    position of their job. `__cause__` is the first error.
    """

    def __init__(self, message: str, *, results: Sequence[Any]) -> None:
        super().__init__(message)
        self.results = tuple(results)

    @property
    def refused(self) -> dict[int, RopewalkError]:
        """The errors of the refused jobs, by the position of the job in the call."""
        return {at: each for at, each in enumerate(self.results) if isinstance(each, RopewalkError)}


class Conflict(RopewalkError):
    """The id or idempotency key already stands for something else, or the state of the job does not allow the call."""


class RevMismatch(Conflict):
    """The job or schedule is not in the state that `if_rev` names, because somebody has changed it since.

    `expected` is what the caller gave, and `current` is the rev of the job, or the version of the schedule.
    """

    def __init__(self, message: str, *, expected: int, current: int) -> None:
        super().__init__(message)
        self.expected = expected
        self.current = current


class NotFound(RopewalkError, LookupError):
    """This tenant has no such job, worker or schedule, or the result of the job is gone."""


class JobFailed(RopewalkError):
    """The awaited job ended as failed or dead_letter; `error` is the recorded error."""

    def __init__(self, message: str, *, job_id: str, state: str, error: object | None) -> None:
        super().__init__(message)
        self.job_id = job_id
        self.state = state
        self.error = error


class JobCancelled(RopewalkError):
    """The awaited job was cancelled."""

    def __init__(self, message: str, *, job_id: str) -> None:
        super().__init__(message)
        self.job_id = job_id


class GroupFailed(RopewalkError):
    """The awaited group closed with jobs that did not complete, or its value cannot be determined. The counts are of
    jobs."""

    def __init__(self, message: str, *, group_id: str, completed: int, failed: int, cancelled: int) -> None:
        super().__init__(message)
        self.group_id = group_id
        self.completed = completed
        self.failed = failed
        self.cancelled = cancelled


class WaitTimeout(RopewalkError, TimeoutError):
    """The timeout of a wait is over, and the job has not ended."""


class LeaseLost(RopewalkError):
    """This attempt no longer owns its job, and the store accepts nothing more from it. `reason` says why."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class TransactionNotCompleted(RopewalkError):
    """A block of `ctx.transaction()` ended without `tx.complete(...)`, and everything in it was rolled back.

    If this error ends the handler, the job fails for good with the code `not_completed`.
    """


class SpawnMismatch(RopewalkError):
    """A spawn key was used before with another type or input."""


class UnexpectedExit(RopewalkError):
    """A function that is not a handler (a hook, a classifier, a lifespan) raised SystemExit, CancelledError or another
    exception that is not an Exception. `__cause__` is the original exception."""


class StoreUnavailable(RopewalkError):
    """The store cannot be reached or written; nothing was changed."""


class OutcomeUnknown(StoreUnavailable):
    """The connection to the store broke during a commit, so the change may or may not have happened. Repeat the call
    with the same id."""


class StoreRefused(RopewalkError):
    """ropewalk must not use the store in its present condition; the message says what to do."""


class SchemaMismatch(StoreRefused):
    """The store belongs to a newer ropewalk or to another program."""


class WeakDurability(StoreRefused):
    """The settings of the store could lose acknowledged jobs."""


class Outcome(Exception):
    """Base class of the exceptions that a handler raises to decide how its attempt ends. They are not errors."""


class Retry(Outcome):
    """The attempt failed and the job is tried again; `after` (seconds) replaces the backoff."""

    def __init__(self, message: str = "retry requested", *, after: float | timedelta | None = None) -> None:
        super().__init__(message)
        self.after = after


class Defer(Outcome):
    """The job runs again after `delay` (seconds) or `at` a time, and this attempt does not count."""

    def __init__(
        self, message: str = "deferred", *, delay: float | timedelta | None = None, at: datetime | None = None
    ) -> None:
        super().__init__(message)
        if (delay is None) == (at is None):
            raise TypeError("Defer takes exactly one of delay= and at=")
        self.delay = delay
        self.at = at


class Abort(Outcome):
    """The job ends as failed at once. `cause` is the error to record."""

    def __init__(self, cause: BaseException | str = "aborted") -> None:
        super().__init__(cause)
        self.cause = cause


class NeverEnqueued(RuntimeWarning):
    """An enqueue was built and dropped without being awaited: nothing was queued."""


class UnregisteredJobType(RuntimeWarning):
    """A job was queued whose type its app does not know: no worker of that app runs it. `App(strict=...)` decides."""


class UnsharedStore(RuntimeWarning):
    """The store is the memory of one process although nobody asked for that, or `ropewalk worker` runs on it."""
