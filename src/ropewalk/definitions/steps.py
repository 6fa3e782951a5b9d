"""Durable steps: what a handler has done once is not done again when a later attempt runs it from the top.

Each step has a position (first, second, ...) and a name, and both must be the same in every attempt. This module knows
no store: stored steps and signals come through the attempt's port.

The value of a step is encoded by the return annotation of its function, or otherwise by the untyped codec.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from functools import partial
from types import NoneType
from typing import Any, Final, ParamSpec, TypeVar, cast, get_type_hints

from ropewalk.definitions.codec.codec import TypedCodec, typed_codec
from ropewalk.definitions.context.attempt_port import AttemptPort
from ropewalk.definitions.handler_exceptions import BAD_RESULT, AbortWithCode, Nondeterministic, Suspend
from ropewalk.domain import checks
from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.shown_values import shown
from ropewalk.domain.time import Seconds, Span, to_delay
from ropewalk.domain.workflow.completion import StepKind, StepRecord, Suspension
from ropewalk.errors import Abort, InvalidInput, LimitExceeded, Outcome, WaitTimeout


class StepValues:
    """Encodes and decodes the value of one step."""

    def __init__(self, port: AttemptPort, name: str, fn: Callable[..., Any]) -> None:
        self._port = port
        self._name = name
        self._codec = _codec_of(fn)

    def encode(self, value: object) -> bytes | None:
        """Encode the value. Raises AbortWithCode if it does not fit, because it will not fit next time either."""
        try:
            checks.not_an_outcome(value, "its function")
            if self._codec is None:
                data = self._port.encode_value(value)
            else:
                written = self._codec.encode(value)
                data = None if value is None else written
        except InvalidInput as error:
            undeclared = self._codec is None and not isinstance(value, Outcome)
            hint = "; annotate what its function returns" if undeclared else ""
            unfit = InvalidInput(f"step {self._name!r}: its value does not fit: {error}{hint}", field="step")
            raise AbortWithCode(unfit, BAD_RESULT) from error
        limit = self._port.bounds.result_bytes_max
        if data is not None and len(data) > limit:
            message = f"the value of step {self._name!r} is {len(data):,} bytes, over result_bytes_max={limit:,}"
            too_large = LimitExceeded(f"{message}: store it elsewhere and return a reference", field="step")
            raise AbortWithCode(too_large, BAD_RESULT)
        return data

    def decode(self, data: bytes | None) -> object:
        """Decode a stored value. Raises Abort if it does not fit the code any more."""
        if data is None:
            return None
        try:
            return self._port.decode_value(data) if self._codec is None else self._codec.decode(data)
        except InvalidInput as error:
            raise Abort(InvalidInput(f"step {self._name!r}: its stored value no longer fits: {error}")) from error


def _codec_of(fn: Callable[..., Any]) -> TypedCodec | None:
    """The codec of a function's return annotation; None if there is none, or one that the codec cannot handle."""
    while isinstance(fn, partial):
        fn = fn.func
    try:
        declared = get_type_hints(fn, include_extras=True).get("return", Any)
        if declared is Any or declared is object:
            return None
        return typed_codec(NoneType if declared is None else declared)
    except Exception:  # resolving a name in an annotation evaluates what it says, and may raise anything
        return None


P = ParamSpec("P")
T = TypeVar("T")

_INSIDE: Final[ContextVar[str | None]] = ContextVar("ropewalk_step", default=None)
"""The name of the step whose function runs in this task or thread."""


class Steps:
    """The steps of one attempt, in the order in which the handler calls them."""

    def __init__(self, port: AttemptPort) -> None:
        self._port = port
        self._stored: dict[int, StepRecord] | None = None
        self._names: dict[str, int] = {}
        """The position of each step by its name."""
        self._ordinals: Counter[str] = Counter()
        self._fault: Nondeterministic | None = None
        self._suspended: Suspension | None = None

    # ── a function ──────────────────────────────────────────────────────────────────────────────────────────

    async def step(self, name: str, fn: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Any:
        """Run `fn` and store its value, or return the stored value. A plain function runs in a thread."""
        _check_function(name, fn)
        position = self._take_position(name)
        values = StepValues(self._port, name, fn)
        stored = await self._stored_step(position, name, "step")
        if stored is not None:
            return values.decode(stored.value)
        with _InsideStep(name):
            if _is_async(fn):
                value = await cast("Coroutine[Any, Any, object]", fn(*args, **kwargs))
            else:
                value = await self._port.in_thread(partial(fn, *args, **kwargs))
                if inspect.isawaitable(value):  # a plain function that makes a coroutine, such as a lambda
                    value = await cast("Awaitable[object]", value)
        await self._port.record_step(_done(position, name, values.encode(value)))
        return value

    def step_blocking(self, name: str, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plain function in the handler's own thread and store its value, or return the stored value."""
        _check_function(name, fn)
        if _is_async(fn):
            raise Abort(
                InvalidInput(
                    f"step {name!r}: {_shown(fn)} is an async function, and ctx.sync.step calls plain ones: make the "
                    "handler async and write `await ctx.step(...)`, or give a plain function",
                    field="fn",
                )
            )
        position = self._take_position(name)
        values = StepValues(self._port, name, fn)
        stored = self._port.blocking(self._stored_step(position, name, "step"))
        if stored is not None:
            return cast("T", values.decode(stored.value))
        with _InsideStep(name):
            value = fn(*args, **kwargs)
            if inspect.iscoroutine(value):
                value.close()
                raise Abort(
                    InvalidInput(
                        f"step {name!r}: {_shown(fn)} returned a coroutine, which ctx.sync.step cannot await: give a "
                        "plain function",
                        field="fn",
                    )
                )
        self._port.blocking(self._port.record_step(_done(position, name, values.encode(value))))
        return value

    # ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────

    def sleep(self, seconds: Seconds) -> Coroutine[Any, Any, None]:
        """Suspend the attempt for so long, once; its position is that of this call."""
        span_us = to_delay(seconds, "seconds")
        name = self._ordinal("sleep")
        return self._sleep(self._take_position(name), name, span_us)

    def wait_for(self, signal: str, timeout: Seconds | None) -> Coroutine[Any, Any, object]:
        """Suspend the attempt until the signal comes, and return its value; its position is that of this call.

        Raises WaitTimeout.
        """
        checks.text(signal, "name")
        span_us = None if timeout is None else to_delay(timeout, "timeout")
        name = self._ordinal(f"wait_for-{signal}")
        return self._wait_for(self._take_position(name), name, signal, span_us)

    async def _sleep(self, position: int, name: str, span_us: Span) -> None:
        stored = await self._stored_step(position, name, "sleep")
        if stored is None:
            raise self._suspend(Suspension(position=position, name=name, span_us=span_us))
        if not stored.finished and stored.until is not None and stored.until > self._port.now():
            raise self._suspend(Suspension(position=position, name=name, span_us=span_us, until=stored.until))

    async def _wait_for(self, position: int, name: str, signal: str, span_us: Span | None) -> object:
        stored = await self._stored_step(position, name, "signal")
        if stored is None or not stored.finished:
            stored = await self._arrived(position, name, signal, stored, span_us)
        if stored.until is not None:
            # A signal that came has no `until`. So this wait timed out, which stays so even if a signal came later.
            raise WaitTimeout(f"wait_for({signal!r}): no such signal came in time")
        return self._port.decode_value(stored.value)

    async def _arrived(
        self, position: int, name: str, signal: str, stored: StepRecord | None, span_us: Span | None
    ) -> StepRecord:
        """The signal, or the end of the wait, as the step that is stored from now on. Raises Suspend without either."""
        taken = await self._port.take_signal(StepRecord(position=position, name=name, kind="signal"), signal)
        if taken is not None:
            return taken
        if stored is None:
            raise self._suspend(Suspension(position=position, name=name, signal=signal, span_us=span_us))
        if stored.until is None or stored.until > self._port.now():
            raise self._suspend(
                Suspension(position=position, name=name, signal=signal, span_us=span_us, until=stored.until)
            )
        given_up = StepRecord(position=position, name=name, kind="signal", until=stored.until)
        await self._port.record_step(given_up)
        return given_up

    @property
    def fault(self) -> Nondeterministic | None:
        """The error that ends this attempt, even if its handler catches it."""
        return self._fault

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────

    def ended(self) -> Suspension | None:
        """Check the steps after the handler has returned. Raises Nondeterministic.

        Returns the suspension that the handler caught, if it did: the attempt is suspended all the same.
        """
        if self._fault is not None:
            raise self._fault
        if self._suspended is not None:
            return self._suspended
        if self._stored is None:
            if self._port.job.flags & STEPPED:
                raise self._nondeterministic("the handler returned without any of its stored steps")
            return None
        left = [each for position, each in sorted(self._stored.items()) if position >= len(self._names)]
        if left:
            names = ", ".join(repr(each.name) for each in left[:3])
            raise self._nondeterministic(f"the handler returned without its stored step(s) {names}")
        return None

    # ── places and names ────────────────────────────────────────────────────────────────────────────────────

    def _take_position(self, name: str) -> int:
        """The position of a new step, taken in the call, so that concurrent steps have the order of their calls."""
        if (outer := _INSIDE.get()) is not None:
            raise Abort(InvalidInput(f"step {name!r} is inside step {outer!r}: steps stand one beside another"))
        try:
            checks.text(name, "name")
        except InvalidInput as error:
            raise Abort(InvalidInput(f"a step's {error}", field="name")) from error
        if name in self._names:
            self._fault = Nondeterministic(f"two steps are named {name!r}: give each its own name")
            raise self._fault
        bounds = self._port.bounds
        if len(name) > bounds.name_chars_max:
            raise Abort(LimitExceeded(f"a step's name has {len(name)} characters: {name[:40]!r}...", field="name"))
        if len(self._names) >= bounds.steps_max:
            raise Abort(LimitExceeded(f"step {name!r} is over steps_max={bounds.steps_max:,}", field="step"))
        return self._names.setdefault(name, len(self._names))

    def _ordinal(self, kind: str) -> str:
        self._ordinals[kind] += 1
        return f"{kind}-{self._ordinals[kind]}"

    async def _stored_step(self, position: int, name: str, kind: StepKind) -> StepRecord | None:
        """The stored step at this position, if there is one. Raises Nondeterministic if it is another step."""
        if self._stored is None:
            stored_steps = {each.position: each for each in await self._port.steps()}
            if self._stored is None:  # a step beside this one may have loaded them meanwhile
                self._stored = stored_steps
        stored = self._stored.get(position)
        if stored is not None and (stored.name, stored.kind) != (name, kind):
            raise self._nondeterministic(f"step {position + 1} is {name!r} now and was {stored.name!r} before")
        return stored

    def _nondeterministic(self, what: str) -> Nondeterministic:
        self._fault = Nondeterministic(
            f"{what}: a handler must come by the same steps in the same order every time it runs from the top"
        )
        return self._fault

    def _suspend(self, suspension: Suspension) -> Suspend:
        self._suspended = suspension
        return Suspend(suspension)


class _InsideStep:
    """The time in which a step's function runs.

    A step inside of it is refused, because it would be missing when the value of the outer one is replayed.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._token = _INSIDE.set(self._name)

    def __exit__(self, *_: object) -> None:
        _INSIDE.reset(self._token)


def _is_async(fn: Callable[..., object]) -> bool:
    """Whether a call of the function only makes a coroutine, so that it runs on the event loop."""
    while isinstance(fn, partial):
        fn = fn.func
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def _check_function(name: str, fn: object) -> None:
    """Raises Abort if the value is no function, because every attempt would give the same again."""
    if callable(fn):
        return
    if inspect.iscoroutine(fn):
        fn.close()
    raise Abort(
        InvalidInput(
            f"step {name!r}: {shown(fn)} is no function: give the function itself and then its arguments, "
            "as in ctx.step('charge', charge, order)",
            field="fn",
        )
    )


def _shown(fn: Callable[..., object]) -> str:
    return getattr(fn, "__qualname__", None) or shown(fn)


def _done(position: int, name: str, value: bytes | None) -> StepRecord:
    return StepRecord(position=position, name=name, kind="step", value=value)
