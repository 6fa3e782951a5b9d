"""Everything that is said between a worker and a handler's process. Nothing here is imported, evaluated or unpickled.

worker → process: `Run`; while the handler runs `Cancel`, and an `Answer` or a `Refusal` to each call
process → worker: `Began`; while the handler runs `Told`, `Logged`, `Trouble` and calls (`Checkpoint`, `Spawn`,
`States`, `Once`, `Steps`, `RecordStep`, `TakeSignal`); at last `Done`

Errors of the worker's side, as data and as exceptions again: only ropewalk's own tree, found by name in it.
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
    """Run this attempt. `source` is where the worker's registry has the type from, never where stored data says."""

    job: JobRecord
    source: Source
    bounds: Bounds
    defaults: AppDefaults
    idempotency_key: str
    now: Instant
    """the store's clock"""
    dependencies: list[Dependency] = []
    types: dict[str, Source] = {}
    """where to find the types of dependencies, to decode their results by"""
    memory_mb: int | None = None
    """how much the handler may make this process use"""
    decide: Source | None = None
    """where to find the app's classifier, which `defaults` cannot hold here"""
    logs: Logs = Logs()


class Cancel(Struct, frozen=True, tag=True):
    """A cooperative cancellation: the handler sees it when it looks."""

    why: Cancellation


class Answer(Struct, frozen=True, tag=True):
    """Whoever asked knows what the value must be, and converts it."""

    call: int
    value: Any


class Refusal(Struct, frozen=True, tag=True):
    """The call raised; messages.py makes it an exception again."""

    call: int
    error: str
    message: str
    facts: dict[str, str | int | float | None]


Order: TypeAlias = Run | Cancel | Answer | Refusal


# ── process → worker ────────────────────────────────────────────────────────────────────────────────────────


class Began(Struct, frozen=True, tag=True):
    """User code runs from here on. A process that dies before this has cost the job nothing."""


class Told(Struct, frozen=True, tag=True):
    """Progress."""

    percent: float
    message: str | None


class Logged(Struct, frozen=True, tag=True):
    """A line to keep with the job."""

    level: int
    message: str
    fields: str | None


class Trouble(Struct, frozen=True, tag=True):
    """Something to report that does not change the outcome, such as a classifier that raised."""

    error: str
    phase: str


class Checkpoint(Struct, frozen=True, tag=True):
    call: int
    data: bytes


class Spawn(Struct, frozen=True, tag=True):
    call: int
    jobs: list[tuple[NewJob, str | None]]


class States(Struct, frozen=True, tag=True):
    call: int
    ids: list[str]


class Once(Struct, frozen=True, tag=True):
    call: int
    key: str
    ttl_us: Span


class Steps(Struct, frozen=True, tag=True):
    call: int


class RecordStep(Struct, frozen=True, tag=True):
    call: int
    step: StepRecord


class TakeSignal(Struct, frozen=True, tag=True):
    call: int
    step: StepRecord
    signal: str


class Done(Struct, frozen=True, tag=True):
    """The last word about an attempt: an Outcome by the name of its class."""

    kind: str
    body: bytes


Call: TypeAlias = Checkpoint | Spawn | States | Once | Steps | RecordStep | TakeSignal
Report: TypeAlias = Began | Told | Logged | Trouble | Call | Done


def done(outcome: Outcome) -> Done:
    return Done(type(outcome).__name__, msgspec.msgpack.encode(outcome))


def outcome_of(message: Done) -> Outcome:
    """Raises msgspec.DecodeError for what is no outcome."""
    kind = _OUTCOMES.get(message.kind)
    if kind is None:
        raise msgspec.DecodeError(f"{message.kind!r} is no outcome")
    return msgspec.msgpack.decode(message.body, type=kind)


_OUTCOMES: Final[dict[str, type[Outcome]]] = {each.__name__: each for each in get_args(Outcome)}


def refusal(call: int, error: Exception) -> Refusal:
    facts = {name: value for name, value in vars(error).items() if isinstance(value, str | int | float | None)}
    return Refusal(call, type(error).__name__, clipped(str(error)), facts)


def revived(refused: Refusal) -> Exception:
    """The same exception for one of ropewalk's; else a RuntimeError that names it."""
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
