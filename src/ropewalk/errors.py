"""Every exception ropewalk raises, as one tree. This module imports nothing of ours.

RopewalkError
├── DefinitionError (TypeError)      a handler or an app is declared in a way that cannot work
├── UnknownJobType (LookupError)     a name nobody registered
├── InvalidInput (ValueError)        an argument, option, payload or URL that does not fit
│   └── LimitExceeded                … because it is over a bound (names the field, value and bound)
├── QuotaExceeded                    the tenant used up what it may
├── PartlyEnqueued                   of many jobs that were to be queued some were refused (atomic=False)
├── Conflict                         the same id or key already stands for something else
├── NotFound (LookupError)           no such job, for this tenant
├── JobFailed                        the awaited job ended as failed or dead_letter
├── JobCancelled                     the awaited job was cancelled (never asyncio.CancelledError)
├── GroupFailed                      the awaited group closed with failures, or its value cannot be told
├── WaitTimeout (TimeoutError)       the wait is over, the job is not
├── LeaseLost                        this attempt no longer owns its job; nothing it says is accepted
├── SpawnMismatch                    a spawn key was used before with another type or input
├── UnexpectedExit                   a function that is no handler raised what is no Exception, such as SystemExit
├── BeyondTenant (AttributeError)    a client of one tenant was asked for what concerns others
├── Unsupported                      this store, or this kind of handler, has no such ability
├── StoreUnavailable                 the store cannot be reached or written; nothing was changed
│   └── OutcomeUnknown               … or it may have been: repeat with the same id
└── StoreRefused                     the store must not be used as it is
    ├── SchemaMismatch               it belongs to a newer ropewalk, or to another program
    └── WeakDurability               its settings could lose acknowledged work

Outcome (Exception, apart): raised inside a handler to decide how the attempt ends
├── Retry    ├── Defer    └── Abort

NeverEnqueued (RuntimeWarning): an enqueue was built and never awaited
UnregisteredJobType (RuntimeWarning): a job of a type that its app does not know was queued
UnsharedStore (RuntimeWarning): a store that lives in one process is used where others may be expected to reach it
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta


class RopewalkError(Exception):
    """Base of everything ropewalk raises."""


class Unsupported(RopewalkError):
    """This store, or this kind of handler, has no such ability; the message says which has.

    `store` names the store and `capability` what it lacks; both are None where it is not for a store to have.
    """

    def __init__(self, message: str, *, store: str | None = None, capability: str | None = None) -> None:
        super().__init__(message)
        self.store = store
        self.capability = capability


class BeyondTenant(RopewalkError, AttributeError):
    """A client that is bound to one tenant (`app.tenant(...)`) was asked for what concerns other tenants."""


class DefinitionError(RopewalkError, TypeError):
    """A handler, job type or app is declared in a way that cannot work."""


class UnknownJobType(RopewalkError, LookupError):
    """The job type is not registered here."""


class InvalidInput(RopewalkError, ValueError):
    """An argument, option, payload or URL does not fit; `field` names it."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class LimitExceeded(InvalidInput):
    """A value is over a configured bound."""


class QuotaExceeded(RopewalkError):
    """The tenant has used up what it may: `limit` names which, and `retry_after` (seconds) is None where waiting is no
    help."""

    def __init__(self, message: str, *, limit: str, current: int, maximum: int, retry_after: float | None) -> None:
        super().__init__(message)
        self.limit = limit
        self.current = current
        self.maximum = maximum
        self.retry_after = retry_after


class PartlyEnqueued(RopewalkError):
    """Of the jobs given to `enqueue_many(..., atomic=False)` some were refused, and the others are queued.

    `results` has a handle or an error for each job, in the order in which they were given; `refused` the errors alone,
    by the position of their job. `__cause__` is the first of them.
    """

    def __init__(self, message: str, *, results: Sequence[Any]) -> None:
        super().__init__(message)
        self.results = tuple(results)

    @property
    def refused(self) -> dict[int, RopewalkError]:
        return {at: each for at, each in enumerate(self.results) if isinstance(each, RopewalkError)}


class Conflict(RopewalkError):
    """The same id or idempotency key already stands for something else."""


class NotFound(RopewalkError, LookupError):
    """No such job, queue or schedule for this tenant."""


class JobFailed(RopewalkError):
    """The awaited job ended as failed or dead_letter; `error` is what was recorded."""

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
    """The awaited group closed with jobs that did not complete, or its value cannot be told. The counts are of jobs."""

    def __init__(self, message: str, *, group_id: str, completed: int, failed: int, cancelled: int) -> None:
        super().__init__(message)
        self.group_id = group_id
        self.completed = completed
        self.failed = failed
        self.cancelled = cancelled


class WaitTimeout(RopewalkError, TimeoutError):
    """The wait is over, the job is not."""


class LeaseLost(RopewalkError):
    """This attempt no longer owns its job; nothing it says is accepted. `reason` says why."""

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class SpawnMismatch(RopewalkError):
    """A spawn key was used before with another type or input."""


class UnexpectedExit(RopewalkError):
    """A function that is no handler (a hook, a classifier, a lifespan) raised SystemExit, CancelledError or another
    exception that is no Exception. `__cause__` is that one."""


class StoreUnavailable(RopewalkError):
    """The store cannot be reached or written; nothing was changed."""


class OutcomeUnknown(StoreUnavailable):
    """The store broke while committing: the change may or may not be there. Repeat with the same id."""


class StoreRefused(RopewalkError):
    """The store must not be used as it is."""


class SchemaMismatch(StoreRefused):
    """The store belongs to a newer ropewalk or to another program."""


class WeakDurability(StoreRefused):
    """The store's settings could lose acknowledged work."""


class Outcome(Exception):
    """Raised inside a handler to decide how the attempt ends; not an error of ropewalk."""


class Retry(Outcome):
    """Try again; `after` (seconds) replaces the backoff. Counts as an attempt."""

    def __init__(self, message: str = "retry requested", *, after: float | timedelta | None = None) -> None:
        super().__init__(message)
        self.after = after


class Defer(Outcome):
    """Not now: run again after `delay` seconds or `at` a time. Costs no attempt."""

    def __init__(
        self, message: str = "deferred", *, delay: float | timedelta | None = None, at: datetime | None = None
    ) -> None:
        super().__init__(message)
        if (delay is None) == (at is None):
            raise TypeError("Defer takes exactly one of delay= and at=")
        self.delay = delay
        self.at = at


class Abort(Outcome):
    """Give up at once: the job ends as failed. `cause` is the error to record."""

    def __init__(self, cause: BaseException | str = "aborted") -> None:
        super().__init__(str(cause))
        self.cause = cause


class NeverEnqueued(RuntimeWarning):
    """An enqueue was built and dropped without being awaited: nothing was queued."""


class UnregisteredJobType(RuntimeWarning):
    """A job was queued whose type its app does not know: no worker of that app runs it. `App(strict=...)` decides."""


class UnsharedStore(RuntimeWarning):
    """The store lives in the memory of this process, and nobody chose that, or a worker of its own runs on it."""
