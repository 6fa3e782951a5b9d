"""A job as a user builds it: immutable, with checked and encoded arguments and an id, but not enqueued yet.

A job gets its id when it is built. So this is the one module of the definitions that uses the clock and randomness.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeGuard, TypeVar, Unpack, cast

from msgspec import Struct, structs

from ropewalk.definitions import enqueue_options
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.domain import checks
from ropewalk.domain.ids import counted, random_part, time_part
from ropewalk.domain.redaction import HIDDEN, Hide, redacted
from ropewalk.domain.shown_values import shown
from ropewalk.errors import InvalidInput

if TYPE_CHECKING:
    from ropewalk.definitions.job_types.job_type import JobType


ENTROPY_BATCH = 256
"""Randomness is read for so many ids at once, because one read of the system's randomness costs as much as an id."""


class MonotonicIds:
    """Makes UUIDv7 ids that grow within this process; any thread may call it. A forked process draws new randomness."""

    _lock: Lock
    _random_parts: Iterator[str]
    _pid: int
    _ms: int
    _counter: int
    _time_part: str

    def __init__(self) -> None:
        self._begin()

    def __call__(self) -> str:
        if self._pid != os.getpid():
            self._begin()
        with self._lock:
            now_ms = time.time_ns() // 1_000_000
            if now_ms > self._ms:
                self._go_to(now_ms)
            elif self._counter < 0xFFF:
                self._counter += 1
            else:  # there were more than 4096 ids in this ms, or the clock went back: run ahead of the clock
                self._go_to(self._ms + 1)
            part = next(self._random_parts, None)
            if part is None:
                self._random_parts = _draw()
                part = next(self._random_parts)
            return counted(self._time_part, self._counter, part)

    def _go_to(self, ms: int) -> None:
        self._ms, self._counter, self._time_part = ms, 0, time_part(ms)

    def _begin(self) -> None:
        # A new lock too: the fork may have happened while another thread held the old one.
        self._lock = Lock()
        self._random_parts = _draw()
        self._go_to(0)
        self._pid = os.getpid()


def new_id() -> str:
    """The id of the next job."""
    return _generate()


def set_id_generator(generate: Callable[[], str] | None) -> None:
    """Make the ids of jobs with `generate` from now on, in this process; None returns to UUIDv7."""
    checks.function_or_none(generate, "generate")
    global _generate  # noqa: PLW0603 # jobs are built by module-level calls: there is no object to hold it
    _generate = _default if generate is None else generate


def _draw() -> Iterator[str]:
    return iter([random_part(each) for each in memoryview(os.urandom(8 * ENTROPY_BATCH)).cast("Q")])


_default = MonotonicIds()
_generate: Callable[[], str] = _default


S_co = TypeVar("S_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)

REPR_CHARS_MAX: Final = 120
"""Characters of the arguments that the repr of a job shows."""

AttemptKey: TypeAlias = tuple[int, int]
"""The number of a job in its store, and the fence of its attempt."""


class Running(Protocol):
    """The part of the context of a running handler that this module needs."""

    @property
    def attempt_key(self) -> AttemptKey: ...


RUNNING: Final[ContextVar[Running | None]] = ContextVar("ropewalk_context", default=None)
"""The context of the handler that runs in this task or thread."""


def running_attempt() -> AttemptKey | None:
    """The attempt whose handler runs in this task or thread; None outside of handlers."""
    running = RUNNING.get()
    return None if running is None else running.attempt_key


NO_OPTIONS: Final = cast("EnqueueOptions", MappingProxyType({}))


class Job(Struct, Generic[S_co, G_co], frozen=True, eq=False):
    """A job that was built by calling a job type. Two jobs are equal if their id, type, input and options are.

    The `repr` of a job hides arguments that are annotated as Secret or have a secret name.
    """

    id: str
    type: JobType[..., S_co, G_co]
    input: bytes
    """The encoded arguments, as they are stored."""
    arguments: Mapping[str, object]
    """The arguments by name, as they were given, with the defaults of the others."""
    options: EnqueueOptions = NO_OPTIONS
    """The options that were given to `using`; the mapping is read-only."""
    built_in: AttemptKey | None = None
    """For the engine: the attempt whose handler built this job; None if no handler did."""
    chosen_id: bool = False
    """For the engine: whether the user chose the id with `using(id=...)`."""

    def using(self, **options: Unpack[EnqueueOptions]) -> Job[S_co, G_co]:
        """A copy with these options, which replace earlier ones, and with the same id unless `id` is among them."""
        enqueue_options.check(options)
        chosen = "id" in options
        own_id = options.pop("id", self.id)
        merged = cast("EnqueueOptions", MappingProxyType({**self.options, **options}))
        return structs.replace(self, id=own_id, options=merged, chosen_id=chosen or self.chosen_id)

    def again(self) -> Job[S_co, G_co]:
        """A copy with a new id, for doing the same work once more."""
        return structs.replace(self, id=new_id(), built_in=running_attempt(), chosen_id=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Job):
            return NotImplemented
        return self._content() == other._content()

    def __ne__(self, other: object) -> bool:
        return not self == other  # Struct brings a `!=` of its own, which is not the opposite of this `==`

    def _content(self) -> tuple[object, ...]:
        return self.id, self.type, self.input, self.options

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return self._shown(redacted(self.arguments, self._secrets))

    def __redacted__(self, hide: Hide) -> object:
        return self._shown(hide(self.arguments, self._secrets))

    @property
    def _secrets(self) -> frozenset[str]:
        return self.type.resolve().arguments.secrets

    def _shown(self, arguments: Mapping[str, object]) -> str:
        given = "".join(f" {name}={HIDDEN if value is HIDDEN else repr(value)}" for name, value in arguments.items())
        shown = given if len(given) <= REPR_CHARS_MAX else f"{given[:REPR_CHARS_MAX]}..."
        return f"Job({self.type.name}{shown})"


def _is_job(value: object) -> TypeGuard[Job[Any, Any]]:
    return isinstance(value, Job)


def checked_job(value: object, call: str, field: str = "job") -> Job[Any, Any]:
    """The job that is to be queued. Raises InvalidInput if it is no job; `call` names what the user called."""
    if _is_job(value):
        return value
    if inspect.iscoroutine(value):
        value.close()
        hint = "decorate the async function with @job, so that calling it makes a job"
    elif callable(value):
        hint = f"call it: {call}({getattr(value, '__name__', 'job_type')}(...))"
    else:
        hint = f"give what calling a job type makes, as in {call}(send_email(...))"
    raise InvalidInput(f"{field}={shown(value)} is no job; {hint}", field=field)
