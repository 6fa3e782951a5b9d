"""Options: what may be said about a type of jobs, about one job, and as an app's defaults.

Precedence, strongest first: the enqueue call, `Job.using`, the type's `options=` function, the type, the app, what is
built in. submission.py applies it.

What an app wants done with the lines its handlers log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, get_args

from msgspec import UNSET, Struct, UnsetType, structs

from ropewalk.definitions import option_checks
from ropewalk.definitions.codec.codec import DEFAULT_CODEC
from ropewalk.definitions.limit import Limit, limit_of
from ropewalk.definitions.middleware import Middleware, Requirement, middlewares_of, requirements_of
from ropewalk.definitions.policies import Concurrency, checked_concurrency
from ropewalk.domain import checks
from ropewalk.domain.jobs.record import DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_CRASHES, DEFAULT_QUEUE, KeyScope
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.time import SECOND, Seconds, Span
from ropewalk.domain.workflow.dependency import Policy
from ropewalk.errors import DefinitionError, InvalidInput
from ropewalk.ports.codec import Codec

if TYPE_CHECKING:
    from ropewalk.definitions.dependency import Condition, Parent
    from ropewalk.definitions.job import Job
    from ropewalk.definitions.job_types.job_type import JobType


LevelName: TypeAlias = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class Logs(Struct, frozen=True, kw_only=True):
    """`App(logs=Logs(keep="WARNING", secret_keys=("iban",)))`."""

    keep: LevelName | None = "INFO"
    """lines of `ctx.log` from this level on are kept with their job; None keeps none"""
    secret_keys: tuple[str, ...] = ()
    """fields of these names are hidden, beside those that are always"""

    def __post_init__(self) -> None:
        try:
            if self.keep is not None:
                checks.choice(self.keep, "keep", list(logging.getLevelNamesMapping()), also="None")
            structs.force_setattr(self, "secret_keys", checks.names(self.secret_keys, "secret_keys"))
        except InvalidInput as error:
            raise DefinitionError(f"Logs: {error}") from error

    def keeps(self, level: int) -> bool:
        return self.keep is not None and level >= logging.getLevelNamesMapping()[self.keep]


Arguments: TypeAlias = Mapping[str, Any]
"""by name, as a function of a type's options gets them: that function knows what its own type takes"""
ExceptionTypes: TypeAlias = type[BaseException] | Iterable[type[BaseException]]
Executor: TypeAlias = Literal["auto", "thread", "process"]
Decision: TypeAlias = Literal["retry", "abort"] | Seconds | datetime | None
Classifier: TypeAlias = Callable[[BaseException], Decision] | Callable[[BaseException, int], Decision]
CustomBackoff: TypeAlias = Callable[[int], Seconds]


class EnqueueOptions(TypedDict, total=False):
    """What may be said about one job, at `using(...)` or when it is enqueued."""

    id: str
    delay: Seconds
    run_at: datetime
    """wins over delay"""
    priority: int
    queue: str
    max_attempts: int | None
    """None: unlimited"""
    max_crashes: int
    backoff: Backoff
    """fields left unset come from the type, the app, what is built in"""
    timeout: Seconds
    """for each attempt"""
    deadline: datetime
    """for the whole life; wins over ttl"""
    ttl: Seconds
    lease: Seconds
    idempotency_key: str
    idempotency_scope: KeyScope
    idempotency_window: Seconds
    correlation_id: str
    tags: Mapping[str, str]
    workflow_id: str
    workflow_type: str
    on_failure: JobType[..., Any, Any] | Job[Any, Any] | None
    """None: none, whatever the type says"""
    tenant: str
    limit: str | None
    """counted against the limit of this key (app.set_limit(key=...)); None: none, whatever the type says"""
    fairness: str | None
    """the label that workers with Balanced(...) share their slots among; None: none, whatever the type says"""
    skip_queue: bool
    depends_on: Parent | Sequence[Parent]
    """jobs, handles, ids, Group(...), Chain(...): it may start only when `when` holds over them"""
    when: Condition
    """all_success unless given"""
    on_unsatisfied: Policy | None
    """what becomes of it when `when` can no longer hold; None: it fails, or is cancelled like what it waited for"""
    gate_timeout: Seconds
    """for what it depends on; then on_unsatisfied decides"""
    allow_missing: bool
    """one that does not exist counts as done and successful"""


class BatchOptions(Struct, frozen=True, kw_only=True):
    """Of a type whose handler takes many items at once."""

    size: int
    max_wait_us: Span
    """how long a batch that is not full waits for more"""
    max_batches: int | None = None
    """how many batches of the type one worker gathers or runs at once; None: as many as it has slots"""


class JobTypeOptions(TypedDict, total=False):
    """What may be said at `@job(...)`, beside `executor`, which decides the decorator's own type."""

    name: str
    """the function's name unless given; it is stored, so keep it when the function moves"""
    queue: str
    priority: int
    max_attempts: int | None
    max_crashes: int
    backoff: Backoff | CustomBackoff
    """a function gets the number of the attempt that failed and returns the wait"""
    timeout: Seconds
    ttl: Seconds
    lease: Seconds
    retry_on: ExceptionTypes
    """only these are retried; every other error is permanent"""
    abort_on: ExceptionTypes
    """these are permanent"""
    decide: Classifier
    """asked first about every error; None leaves it to retry_on and abort_on. A function with a second parameter gets
    the number of the attempt that failed, too"""
    options: Callable[[Arguments], EnqueueOptions]
    """options of one job, computed from its arguments when it is enqueued"""
    on_failure: JobType[..., Any, Any] | Job[Any, Any]
    on_event: Callable[[Any], object]
    log_context: Callable[[Arguments], Mapping[str, object]]
    limit: Limit | str
    """fleet-wide; text alone is the key whose limit its jobs count against (app.set_limit(key=...))"""
    middlewares: Sequence[Middleware]
    """around its handler, inside those of the app; the first is outermost"""
    requires: Sequence[Requirement]
    """middlewares its handler cannot do without: a worker that has not all of them does not start"""
    concurrency: Concurrency
    """of its jobs in one worker, beside the worker's own: a number, or a policy (ropewalk.policies)"""
    fairness: str
    skip_queue: bool
    strict_return: bool
    unique: Callable[[Arguments], str]
    """the idempotency key, computed from the arguments, of a job that is given none"""
    codec: Codec


class ProcessOptions(JobTypeOptions, total=False):
    """What may be said at `@job(executor="process", ...)`."""

    memory_mb: int
    """How much the process of a handler may use, in MiB."""


class TypeOptions(Struct, frozen=True, kw_only=True):
    """A type's options, checked and in the domain's terms. None (UNSET for max_attempts) leaves it to the app."""

    executor: Executor = "auto"
    queue: str | None = None
    priority: int | None = None
    max_attempts: int | UnsetType | None = UNSET
    max_crashes: int | None = None
    backoff: Backoff | None = None
    custom_backoff: CustomBackoff | None = None
    timeout_us: Span | None = None
    ttl_us: Span | None = None
    lease_us: Span | None = None
    retry_on: tuple[type[BaseException], ...] = ()
    abort_on: tuple[type[BaseException], ...] = ()
    decide: Classifier | None = None
    options: Callable[[Arguments], EnqueueOptions] | None = None
    on_failure: JobType[..., Any, Any] | Job[Any, Any] | None = None
    on_event: Callable[[Any], object] | None = None
    log_context: Callable[[Arguments], Mapping[str, object]] | None = None
    limit: Limit | None = None
    middlewares: tuple[Middleware, ...] = ()
    requires: tuple[Requirement, ...] = ()
    memory_mb: int | None = None
    concurrency: Concurrency | None = None
    fairness: str | None = None
    skip_queue: bool = False
    strict_return: bool | None = None
    unique: Callable[[Arguments], str] | None = None
    codec: Codec = DEFAULT_CODEC
    batch: BatchOptions | None = None


class AppDefaults(Struct, frozen=True, kw_only=True):
    """What holds for every job of an app whose type says nothing else."""

    queue: str = DEFAULT_QUEUE
    priority: int | None = None
    """None: 0, and a job that depends on others, or continues one, takes over theirs"""
    max_attempts: int | None = DEFAULT_MAX_ATTEMPTS
    max_crashes: int = DEFAULT_MAX_CRASHES
    backoff: Backoff | None = None
    timeout_us: Span | None = None
    ttl_us: Span | None = None
    lease_us: Span | None = None
    strict_order: bool = False
    """priority without ageing"""
    strict_return: bool = True
    # Not annotated as a Classifier: msgspec, which sends these to processes of handlers, takes no union of functions.
    decide: Callable[..., Decision] | None = None
    """asked about errors of types that have none of their own, and do not name the error"""

    @classmethod
    def of(
        cls,
        *,
        queue: str = DEFAULT_QUEUE,
        priority: int | None = None,
        max_attempts: int | None = DEFAULT_MAX_ATTEMPTS,
        max_crashes: int = DEFAULT_MAX_CRASHES,
        backoff: Backoff | None = None,
        timeout: Seconds | None = None,
        ttl: Seconds | None = None,
        lease: Seconds | None = None,
        ageing: bool = True,
        strict_return: bool = True,
        decide: Classifier | None = None,
    ) -> AppDefaults:
        """In seconds or timedeltas: `App(defaults=AppDefaults.of(timeout=30, max_attempts=5))`."""
        try:
            return cls(
                queue=queue,
                priority=priority,
                max_attempts=max_attempts,
                max_crashes=max_crashes,
                backoff=backoff,
                timeout_us=checks.positive_span_or_none(timeout, "timeout"),
                ttl_us=checks.positive_span_or_none(ttl, "ttl"),
                lease_us=checks.positive_span_or_none(lease, "lease"),
                strict_order=not checks.flag(ageing, "ageing"),
                strict_return=strict_return,
                decide=decide,
            )
        except InvalidInput as error:
            raise DefinitionError(f"AppDefaults: {error}") from error

    def __post_init__(self) -> None:
        try:
            checks.text(self.queue, "queue")
            checks.integer_or_none(self.priority, "priority")
            checks.positive_or_none(self.max_attempts, "max_attempts")
            checks.positive(self.max_crashes, "max_crashes")
            for name in ("timeout_us", "ttl_us", "lease_us"):
                checks.positive_or_none(getattr(self, name), name)
            if self.lease_us is not None:
                option_checks.lease(self.lease_us / SECOND, "lease")
            if self.backoff is not None:
                option_checks.backoff(self.backoff, "backoff")
            checks.flag(self.strict_order, "strict_order")
            checks.flag(self.strict_return, "strict_return")
            if self.decide is not None:
                option_checks.classifier(self.decide, "decide")
        except InvalidInput as error:
            raise DefinitionError(f"AppDefaults: {error}") from error


def type_options(given: Mapping[str, object], function: str) -> TypeOptions:
    """Check what `@job(...)` was given, all but its name. `function` is for messages."""
    try:
        checks.known_names(given, [*_TYPE_CHECKS, "name"], "option of @job")
        checked = {name: _TYPE_CHECKS[name](value, name) for name, value in given.items()}
    except InvalidInput as error:
        raise DefinitionError(f"@job on {function}: {error}") from error
    if "memory_mb" in checked and checked.get("executor") != "process":
        raise DefinitionError(f"@job on {function}: memory_mb bounds a process: it needs executor='process'")
    for name in ("timeout", "ttl", "lease"):
        if name in checked:
            checked[f"{name}_us"] = checked.pop(name)
    if not isinstance(checked.get("backoff", UNSET), Backoff | UnsetType):
        checked["custom_backoff"] = checked.pop("backoff")
    return TypeOptions(**checked)


def _executor(value: object, field: str) -> object:
    return checks.choice(value, field, get_args(Executor))


def _backoff(value: object, field: str) -> object:
    return value if callable(value) else option_checks.backoff(value, field)


def _codec(value: object, field: str) -> object:
    return checks.with_methods(value, field, ("encode", "decode"), "a Codec, with encode and decode")


def _as_it_is(value: object, _field: str) -> object:
    return value


_TYPE_CHECKS: Final[Mapping[str, checks.Check]] = {
    "executor": _executor,
    "queue": checks.text,
    "priority": checks.integer,
    "max_attempts": checks.positive_or_none,
    "max_crashes": checks.positive,
    "backoff": _backoff,
    "timeout": checks.positive_span,
    "ttl": checks.positive_span,
    "lease": option_checks.lease,
    "retry_on": checks.exception_types,
    "abort_on": checks.exception_types,
    "decide": option_checks.classifier,
    "options": checks.function,
    "on_failure": _as_it_is,  # the job type checks it: it knows what a job type is
    "on_event": checks.function,
    "log_context": checks.function,
    "limit": limit_of,
    "middlewares": middlewares_of,
    "requires": requirements_of,
    "memory_mb": checks.positive,
    "concurrency": checked_concurrency,
    "fairness": checks.text,
    "skip_queue": checks.flag,
    "strict_return": checks.flag,
    "unique": checks.function,
    "codec": _codec,
}
