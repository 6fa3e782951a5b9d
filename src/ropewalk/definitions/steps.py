"""Durable steps: what a handler did once is not done again when it runs from the top, in whatever attempt.

Each step has a place (the how-manieth it is) and a name, and both must be the same in every run. Knows no store: what
is kept, and the signals that arrived, come through the attempt's port.

How a handler is left when it sleeps or waits: by an exception that passes through `except Exception`.

The value of a step, as it is kept: by the return annotation of its function, else by the untyped codec.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from functools import partial
from types import NoneType
from typing import Any, Final, ParamSpec, TypeVar, cast, get_type_hints

from ropewalk.definitions.codec.codec import TypedCodec, wire
from ropewalk.definitions.context.attempt_port import AttemptPort
from ropewalk.definitions.handler_exceptions import BAD_RESULT, AbortWithCode, Nondeterministic, Suspend
from ropewalk.domain import checks
from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.shown_values import shown
from ropewalk.domain.time import Seconds, Span, to_delay
from ropewalk.domain.workflow.completion import StepKind, StepRecord, Suspension
from ropewalk.errors import Abort, InvalidInput, LimitExceeded, Outcome, WaitTimeout


class StepValues:
    def __init__(self, port: AttemptPort, name: str, fn: Callable[..., Any]) -> None:
        self._port = port
        self._name = name
        self._wire = _wire_of(fn)

    def encode(self, value: object) -> bytes | None:
        """What does not fit will not fit next time either: raises Abort."""
        try:
            checks.not_an_outcome(value, "its function")
            if self._wire is None:
                data = self._port.encode_value(value)
            else:
                written = self._wire.encode(value)
                data = None if value is None else written
        except InvalidInput as error:
            undeclared = self._wire is None and not isinstance(value, Outcome)
            hint = "; annotate what its function returns" if undeclared else ""
            unfit = InvalidInput(f"step {self._name!r}: its value does not fit: {error}{hint}", field="step")
            raise AbortWithCode(unfit, BAD_RESULT) from error
        limit = self._port.bounds.result_bytes_max
        if data is not None and len(data) > limit:
            told = f"the value of step {self._name!r} is {len(data):,} bytes, over result_bytes_max={limit:,}"
            too_large = LimitExceeded(f"{told}: store it elsewhere and return a reference", field="step")
            raise AbortWithCode(too_large, BAD_RESULT)
        return data

    def decode(self, data: bytes | None) -> object:
        if data is None:
            return None
        try:
            return self._port.decode_value(data) if self._wire is None else self._wire.decode(data)
        except InvalidInput as error:
            raise Abort(InvalidInput(f"step {self._name!r}: its stored value no longer fits: {error}")) from error


def _wire_of(fn: Callable[..., Any]) -> TypedCodec | None:
    """None where nothing is declared, or what cannot travel by its annotation."""
    while isinstance(fn, partial):
        fn = fn.func
    try:
        declared = get_type_hints(fn, include_extras=True).get("return", Any)
        if declared is Any or declared is object:
            return None
        return wire(NoneType if declared is None else declared)
    except Exception:  # resolving a name in an annotation evaluates what it says, and may raise anything
        return None


P = ParamSpec("P")
T = TypeVar("T")

_INSIDE: Final[ContextVar[str | None]] = ContextVar("ropewalk_step", default=None)


class Steps:
    """The steps of one attempt, in the order the handler asks for them."""

    def __init__(self, port: AttemptPort) -> None:
        self._port = port
        self._stored: dict[int, StepRecord] | None = None
        self._names: dict[str, int] = {}
        """→ its place"""
        self._ordinals: Counter[str] = Counter()
        self._fault: Nondeterministic | None = None
        self._suspended: Suspension | None = None

    # ── a function ──────────────────────────────────────────────────────────────────────────────────────────

    async def step(self, name: str, fn: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Any:
        """Run `fn` once: a coroutine function on the loop, a plain function in a thread."""
        _check_function(name, fn)
        place = self._take_place(name)
        values = StepValues(self._port, name, fn)
        held = await self._held(place, name, "step")
        if held is not None:
            return values.decode(held.value)
        with _Inside(name):
            if _is_async(fn):
                value = await cast("Coroutine[Any, Any, object]", fn(*args, **kwargs))
            else:
                value = await self._port.in_thread(partial(fn, *args, **kwargs))
                if inspect.isawaitable(value):  # a plain function that makes a coroutine, such as a lambda
                    value = await cast("Awaitable[object]", value)
        await self._port.record_step(_done(place, name, values.encode(value)))
        return value

    def step_blocking(self, name: str, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a plain function once, in the handler's own thread."""
        _check_function(name, fn)
        if _is_async(fn):
            raise Abort(
                InvalidInput(
                    f"step {name!r}: {_shown(fn)} is an async function, and ctx.sync.step calls plain ones: make the "
                    "handler async and write `await ctx.step(...)`, or give a plain function",
                    field="fn",
                )
            )
        place = self._take_place(name)
        values = StepValues(self._port, name, fn)
        held = self._port.blocking(self._held(place, name, "step"))
        if held is not None:
            return cast("T", values.decode(held.value))
        with _Inside(name):
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
        self._port.blocking(self._port.record_step(_done(place, name, values.encode(value))))
        return value

    # ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────

    def sleep(self, seconds: Seconds) -> Coroutine[Any, Any, None]:
        span_us = to_delay(seconds, "seconds")
        name = self._ordinal("sleep")
        return self._sleep(self._take_place(name), name, span_us)

    def wait_for(self, signal: str, timeout: Seconds | None) -> Coroutine[Any, Any, object]:
        _check_signal(signal)
        span_us = None if timeout is None else to_delay(timeout, "timeout")
        name = self._ordinal(f"wait_for-{signal}")
        return self._wait_for(self._take_place(name), name, signal, span_us)

    async def _sleep(self, place: int, name: str, span_us: Span) -> None:
        held = await self._held(place, name, "sleep")
        if held is None:
            raise self._suspend(Suspension(position=place, name=name, span_us=span_us))
        if not held.finished and held.until is not None and held.until > self._port.now():
            raise self._suspend(Suspension(position=place, name=name, span_us=span_us, until=held.until))

    async def _wait_for(self, place: int, name: str, signal: str, span_us: Span | None) -> object:
        held = await self._held(place, name, "signal")
        if held is None or not held.finished:
            held = await self._arrived(place, name, signal, held, span_us)
        if held.until is not None:
            # A signal that came has no `until`: this was given up, and stays so even if one came later.
            raise WaitTimeout(f"wait_for({signal!r}): no such signal came in time")
        return self._port.decode_value(held.value)

    async def _arrived(
        self, place: int, name: str, signal: str, held: StepRecord | None, span_us: Span | None
    ) -> StepRecord:
        """The signal, or the end of the wait, as it is kept from now on; else the handler is left."""
        taken = await self._port.take_signal(StepRecord(position=place, name=name, kind="signal"), signal)
        if taken is not None:
            return taken
        if held is None:
            raise self._suspend(Suspension(position=place, name=name, signal=signal, span_us=span_us))
        if held.until is None or held.until > self._port.now():
            raise self._suspend(Suspension(position=place, name=name, signal=signal, span_us=span_us, until=held.until))
        given_up = StepRecord(position=place, name=name, kind="signal", until=held.until)
        await self._port.record_step(given_up)
        return given_up

    @property
    def fault(self) -> Nondeterministic | None:
        """Why this attempt cannot count, whatever its handler makes of it."""
        return self._fault

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────

    def ended(self) -> Suspension | None:
        """The handler returned. A suspension that it kept from leaving still counts. Raises Nondeterministic."""
        if self._fault is not None:
            raise self._fault
        if self._suspended is not None:
            return self._suspended
        if self._stored is None:
            if self._port.job.flags & STEPPED:
                raise self._nondeterministic("the handler returned without any of its stored steps")
            return None
        left = [each for place, each in sorted(self._stored.items()) if place >= len(self._names)]
        if left:
            told = ", ".join(repr(each.name) for each in left[:3])
            raise self._nondeterministic(f"the handler returned without its stored step(s) {told}")
        return None

    # ── places and names ────────────────────────────────────────────────────────────────────────────────────

    def _take_place(self, name: str) -> int:
        """At once when it is asked for, so that steps run side by side have their places in the order of the calls."""
        if (around := _INSIDE.get()) is not None:
            raise Abort(InvalidInput(f"step {name!r} is inside step {around!r}: steps stand one beside another"))
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

    async def _held(self, place: int, name: str, kind: StepKind) -> StepRecord | None:
        """What is stored at this place. Raises Nondeterministic where that is another step."""
        if self._stored is None:
            stored = {each.position: each for each in await self._port.steps()}
            if self._stored is None:
                self._stored = stored
        held = self._stored.get(place)
        if held is not None and (held.name, held.kind) != (name, kind):
            raise self._nondeterministic(f"step {place + 1} is {name!r} now and was {held.name!r} before")
        return held

    def _nondeterministic(self, what: str) -> Nondeterministic:
        self._fault = Nondeterministic(
            f"{what}: a handler must come by the same steps in the same order every time it runs from the top"
        )
        return self._fault

    def _suspend(self, suspension: Suspension) -> Suspend:
        self._suspended = suspension
        return Suspend(suspension)


class _Inside:
    """While a step's function runs: another step in it would not be there when its value is replayed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._token = _INSIDE.set(self._name)

    def __exit__(self, *_: object) -> None:
        _INSIDE.reset(self._token)


def _is_async(fn: Callable[..., object]) -> bool:
    """Whether calling it only makes a coroutine, so that it belongs on the loop."""
    while isinstance(fn, partial):
        fn = fn.func
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def _check_function(name: str, fn: object) -> None:
    """Refuse before anything is called what could not be a step: every attempt would do the same again."""
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


def _done(place: int, name: str, value: bytes | None) -> StepRecord:
    return StepRecord(position=place, name=name, kind="step", value=value)


def _check_signal(signal: object) -> None:
    checks.text(signal, "name")
