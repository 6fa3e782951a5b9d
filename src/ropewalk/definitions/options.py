"""The options of one job, of a job type and of a batch type, the defaults of an app, and what it does with log lines.

Which of them counts for a job is decided in option_precedence.py.
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
    """What an app does with the log lines of handlers: `App(logs=Logs(keep="WARNING", secret_keys=("iban",)))`."""

    keep: LevelName | None = "INFO"
    """Lines of `ctx.log` from this level on are kept with their job; None keeps none."""
    secret_keys: tuple[str, ...] = ()
    """Fields with these names are hidden, beside those that are always hidden."""

    def __post_init__(self) -> None:
        try:
            if self.keep is not None:
                checks.choice(self.keep, "keep", list(logging.getLevelNamesMapping()), also="None")
            structs.force_setattr(self, "secret_keys", checks.names(self.secret_keys, "secret_keys"))
        except InvalidInput as error:
            raise DefinitionError(f"Logs: {error}") from error

    def keeps(self, level: int) -> bool:
        """Whether lines of this level are kept."""
        return self.keep is not None and level >= logging.getLevelNamesMapping()[self.keep]


Arguments: TypeAlias = Mapping[str, Any]
"""The arguments of a job by name, as the functions among a type's options get them."""

ExceptionTypes: TypeAlias = type[BaseException] | Iterable[type[BaseException]]

Executor: TypeAlias = Literal["auto", "thread", "process"]
"""Where handlers run: on the event loop if they are async and otherwise in a thread, in a thread, or in a process."""

Decision: TypeAlias = Literal["retry", "abort"] | Seconds | datetime | None
"""What a classifier says about an error: retry, fail for good, put the attempt off, or None for no decision."""

Classifier: TypeAlias = Callable[[BaseException], Decision] | Callable[[BaseException, int], Decision]
"""A function that decides what an error means; a second parameter takes the number of the attempt that failed."""

CustomBackoff: TypeAlias = Callable[[int], Seconds]
"""A function from the number of the attempt that failed to the wait before the next one."""


class EnqueueOptions(TypedDict, total=False):
    """The options of one job, which are given to `using(...)` or to the enqueuing call."""

    id: str
    delay: Seconds
    run_at: datetime
    """The earliest moment at which the job may start; if delay is given, too, run_at counts."""
    priority: int
    queue: str
    max_attempts: int | None
    """How many attempts the job has; None means any number."""
    max_crashes: int
    backoff: Backoff
    """The waits between attempts; fields that it leaves unset come from the type, the app and the built-in backoff."""
    timeout: Seconds
    """How long one attempt may take."""
    deadline: datetime
    """The moment at which the job expires if it has not ended; if ttl is given, too, deadline counts."""
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
    """The compensation; None means none, also if the type has one."""
    tenant: str
    limit: str | None
    """The key under whose limit the job is counted (app.set_limit(key=...)); None means none, whatever the type has."""
    fairness: str | None
    """The label among which workers with Balanced(...) share their slots; None means none, whatever the type has."""
    skip_queue: bool
    depends_on: Parent | Sequence[Parent]
    """Jobs, handles, ids, Group(...) or Chain(...) that the job waits for until they satisfy `when`."""
    when: Condition
    """The condition on the jobs in depends_on; the default is all_success."""
    on_unsatisfied: Policy | None
    """What happens to the job if `when` cannot be satisfied any more; None fails it, or cancels it like its parents."""
    gate_timeout: Seconds
    """How long the job waits for those in depends_on; after that, on_unsatisfied decides."""
    allow_missing: bool
    """Whether a job in depends_on that does not exist counts as done and successful."""


class BatchOptions(Struct, frozen=True, kw_only=True):
    """The options that only a batch type has."""

    size: int
    """The number of items in a full batch."""
    max_wait_us: Span
    """How long a batch that is not full waits for more items."""
    max_batches: int | None = None
    """How many batches of the type one worker gathers or runs at once; None means as many as it has slots."""


class JobTypeOptions(TypedDict, total=False):
    """The options of `@job(...)` without `executor`, which decides the type of the decorator."""

    name: str
    """The name of the job type; the default is that of the function. It is stored: keep it when the function moves."""
    queue: str
    priority: int
    max_attempts: int | None
    max_crashes: int
    backoff: Backoff | CustomBackoff
    """The waits between attempts, or a function from the number of the attempt that failed to the wait."""
    timeout: Seconds
    ttl: Seconds
    lease: Seconds
    retry_on: ExceptionTypes
    """The only errors that are retried; any other error fails the job for good."""
    abort_on: ExceptionTypes
    """Errors that fail the job for good."""
    decide: Classifier
    """A function that decides first about every error; if it returns None, retry_on and abort_on decide.

    If it has a second parameter, this is the number of the attempt that failed.
    """
    options: Callable[[Arguments], EnqueueOptions]
    """A function that computes options of one job from its arguments when it is enqueued."""
    on_failure: JobType[..., Any, Any] | Job[Any, Any]
    on_event: Callable[[Any], object]
    log_context: Callable[[Arguments], Mapping[str, object]]
    limit: Limit | str
    """The fleet-wide limit; text alone is the key under whose limit the jobs are counted (app.set_limit(key=...))."""
    middlewares: Sequence[Middleware]
    """Middlewares around the handler and inside of those of the app; the first is the outermost."""
    requires: Sequence[Requirement]
    """Middlewares that the handler needs; a worker that does not have all of them does not start."""
    concurrency: Concurrency
    """How many jobs of the type run at once in one worker: a number, or a policy (ropewalk.policies)."""
    fairness: str
    skip_queue: bool
    strict_return: bool
    unique: Callable[[Arguments], str]
    """A function that computes the idempotency key from the arguments of a job that was given none."""
    codec: Codec


class ProcessOptions(JobTypeOptions, total=False):
    """The options of `@job(executor="process", ...)`."""

    memory_mb: int
    """How much memory the process of a handler may use, in MiB."""


class TypeOptions(Struct, frozen=True, kw_only=True):
    """The checked options of a job type, with times in µs. None, or UNSET for max_attempts, leaves one to the app."""

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
    """The options of every job of an app for which neither the job nor its type has another value."""

    queue: str = DEFAULT_QUEUE
    priority: int | None = None
    """The priority; None means 0, or that of the jobs which a job depends on or continues."""
    max_attempts: int | None = DEFAULT_MAX_ATTEMPTS
    max_crashes: int = DEFAULT_MAX_CRASHES
    backoff: Backoff | None = None
    timeout_us: Span | None = None
    ttl_us: Span | None = None
    lease_us: Span | None = None
    strict_order: bool = False
    """Whether jobs start strictly by priority, and waiting does not raise their priority."""
    strict_return: bool = True
    # Not annotated as a Classifier: msgspec, which sends these to processes of handlers, takes no union of functions.
    decide: Callable[..., Decision] | None = None
    """The classifier for types that have neither a classifier nor retry_on, and do not name the error in abort_on."""

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
        """Make defaults with times in seconds or timedeltas: `App(defaults=AppDefaults.of(timeout=30))`."""
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
    """Check the options of `@job(...)` other than the name. Raises DefinitionError naming the `function`."""
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


def _unchecked(value: object, _field: str) -> object:
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
    "on_failure": _unchecked,  # JobType checks it, because this module cannot import JobType
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
