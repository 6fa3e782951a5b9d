"""The messages between a worker and a handler's process. Reading one imports, evaluates and unpickles nothing.

The worker sends `Run`, and while the handler runs `Cancel`, and an `Answer` or a `Refusal` for each call.
The process sends `Began`, while the handler runs `Progress`, `Logged`, `ReportedError` and the calls `Checkpoint`,
`Spawn`, `States`, `Once`, `Steps`, `RecordStep` and `TakeSignal`, and at last `Done`.

An exception of the worker travels as a `Refusal`; only exceptions of `ropewalk.errors` become what they were.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, get_args

import msgspec
from msgspec import Struct

from ropewalk import errors
from ropewalk.definitions.context.attempt_port import Cancellation
from ropewalk.definitions.options import AppDefaults, Logs
from ropewalk.domain.bounds import Bounds
from ropewalk.domain.failure import clipped
from ropewalk.domain.jobs.outcome import Outcome
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.errors import RopewalkError
from ropewalk.ports.store.workflows import Dependency
from ropewalk.runners.source import Source

# ── worker → process ────────────────────────────────────────────────────────────────────────────────────────


class Run(Struct, frozen=True, tag=True, kw_only=True):
    """The request to run this attempt."""

    job: JobRecord
    source: Source
    """Where the job type is defined, as the worker's registry knows it, and never as stored data says."""
    bounds: Bounds
    defaults: AppDefaults
    idempotency_key: str
    now: Instant
    """The time of the store's clock."""
    dependencies: list[Dependency] = []
    types: dict[str, Source] = {}
    """Where the types of dependencies are defined, which decode their results."""
    memory_mb: int | None = None
    """How much memory the process may use while the handler runs, in MiB."""
    decide: Source | None = None
    """Where the app's classifier is defined; `defaults` cannot hold it, because functions cannot be sent."""
    logs: Logs = Logs()


class Cancel(Struct, frozen=True, tag=True):
    """The attempt should end; the handler learns it when it asks its context."""

    why: Cancellation


class Answer(Struct, frozen=True, tag=True):
    """The answer to a call; whoever made the call converts the value to the type that it expects."""

    call: int
    value: Any


class Refusal(Struct, frozen=True, tag=True):
    """The exception that a call raised in the worker, as data; `exception_of` makes an exception of it again."""

    call: int
    error: str
    """The name of its class."""
    message: str
    facts: dict[str, str | int | float | None]
    """The attributes of the exception that are plain values."""


WorkerMessage: TypeAlias = Run | Cancel | Answer | Refusal
"""What a worker sends to a handler's process."""


# ── process → worker ────────────────────────────────────────────────────────────────────────────────────────


class Began(Struct, frozen=True, tag=True):
    """User code runs from here on. If a process dies before it sends this, the job loses no attempt."""


class Progress(Struct, frozen=True, tag=True):
    """The progress that the handler reports."""

    percent: float
    message: str | None


class Logged(Struct, frozen=True, tag=True):
    """A log line to keep with the job."""

    level: int
    message: str
    fields: str | None


class ReportedError(Struct, frozen=True, tag=True):
    """An error that the worker reports and that does not change the outcome, such as that of a classifier."""

    error: str
    phase: str


class Checkpoint(Struct, frozen=True, tag=True):
    """The call of `ctx.checkpoint`; `data` is the encoded value."""

    call: int
    data: bytes


class Spawn(Struct, frozen=True, tag=True):
    """The call of `ctx.spawn` or `ctx.spawn_many`, with each job and its spawn key."""

    call: int
    jobs: list[tuple[NewJob, str | None]]


class States(Struct, frozen=True, tag=True):
    """The call of `ctx.states`."""

    call: int
    ids: list[str]


class Once(Struct, frozen=True, tag=True):
    """The call of `ctx.once`."""

    call: int
    key: str
    ttl_us: Span


class Steps(Struct, frozen=True, tag=True):
    """The request for the stored steps of the job."""

    call: int


class RecordStep(Struct, frozen=True, tag=True):
    """The request to store a step that has ended."""

    call: int
    step: StepRecord


class TakeSignal(Struct, frozen=True, tag=True):
    """The request for the oldest signal of this name, which is then stored as the value of `step`."""

    call: int
    step: StepRecord
    signal: str


class Done(Struct, frozen=True, tag=True):
    """The last message about an attempt: its outcome."""

    kind: str
    """The name of the outcome's class."""
    body: bytes
    """The outcome as MessagePack."""


Call: TypeAlias = Checkpoint | Spawn | States | Once | Steps | RecordStep | TakeSignal
"""A message that the worker answers; its `call` is a number, which the answer repeats."""

HandlerMessage: TypeAlias = Began | Progress | Logged | ReportedError | Call | Done
"""What a handler's process sends to its worker."""


def done(outcome: Outcome) -> Done:
    """The message that says with which outcome the attempt ended."""
    return Done(type(outcome).__name__, msgspec.msgpack.encode(outcome))


def outcome_of(message: Done) -> Outcome:
    """The outcome in this message. Raises msgspec.DecodeError if there is none."""
    kind = _OUTCOMES.get(message.kind)
    if kind is None:
        raise msgspec.DecodeError(f"{message.kind!r} is no outcome")
    return msgspec.msgpack.decode(message.body, type=kind)


_OUTCOMES: Final[dict[str, type[Outcome]]] = {each.__name__: each for each in get_args(Outcome)}


def refusal(call: int, error: Exception) -> Refusal:
    """The message that says that a call raised this error."""
    facts = {name: value for name, value in vars(error).items() if isinstance(value, str | int | float | None)}
    return Refusal(call, type(error).__name__, clipped(str(error)), facts)


def exception_of(refused: Refusal) -> Exception:
    """The exception that a call raised: one of `ropewalk.errors` itself, any other as a RuntimeError that names it."""
    kind = _KNOWN.get(refused.error)
    if kind is None:
        return RuntimeError(f"{refused.error} in the worker: {refused.message}")
    # Not through __init__: every class has parameters of its own, and all they do is become these attributes.
    error = kind.__new__(kind, refused.message)
    vars(error).update(refused.facts)
    return error


_KNOWN: Final = {
    name: each for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, RopewalkError)
}
