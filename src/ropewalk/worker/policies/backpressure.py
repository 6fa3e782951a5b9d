"""Backpressure: before each poll, a worker asks a hook or an AdaptiveDelay how long to wait. An error in the hook
delays nothing and is reported.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct, structs

from ropewalk.domain import checks
from ropewalk.domain.time import SECOND, Seconds, to_span
from ropewalk.domain.user_calls import guarded, guarded_await
from ropewalk.errors import InvalidInput
from ropewalk.worker.context import WorkerContext


class Load(Struct, frozen=True, kw_only=True):
    """What a worker knows about its own load when it asks how long to wait before the next poll."""

    slots: int
    """This many handlers may run at once."""
    running: int
    """This many jobs run now; every item of a batch counts."""
    buffered: int
    """This many claimed jobs wait for a slot."""
    settled: int
    """This many attempts have been settled since the worker started, however they ended."""
    failed: int
    """This many of the settled attempts ended in an error."""
    handler_seconds: float | None
    """A handler takes this long, as a smoothed mean; None before the first one has ended."""
    settle_seconds: float | None
    """The store took this long to accept the last results; None before the first ones."""
    lag_seconds: float
    """The event loop takes this long for one turn at the moment."""
    last_claim: int
    """The last poll brought this many jobs."""


class AdaptiveDelay(Struct, frozen=True, kw_only=True):
    """`app.worker(backpressure=AdaptiveDelay(failures=0.2, lag=0.05))` polls less often while one of its signals is
    bad. Each signal that is not None is watched:

    failures: the share of attempts that ended in an error since the last poll; handler: how long handlers take; settle:
    how long the store takes to accept results; lag: how late the event loop is. If a signal is above its mark, the
    delay is `first`, and then `factor` times the last delay, up to `max`. Otherwise the delay shrinks by `step` until
    it is 0.
    """

    failures: float | None = 0.1
    handler: Seconds | None = None
    settle: Seconds | None = None
    lag: Seconds | None = None
    first: Seconds = 0.1
    factor: float = 2.0
    step: Seconds = 0.1
    max: Seconds = 30.0

    def __post_init__(self) -> None:
        if self.failures is not None and checks.number(self.failures, "failures", 0, 1) == 1:
            raise checks.wrong("failures", self.failures, "a share, from 0 to less than 1, or None")
        if self.failures is None and self.handler is None and self.settle is None and self.lag is None:
            raise InvalidInput("nothing to watch: give failures=, handler=, settle= or lag=", field="failures")
        if checks.number(self.factor, "factor", 1) == 1:
            raise InvalidInput(f"factor={self.factor!r} must be more than 1, or the delay never grows", field="factor")
        for name in ("first", "step", "max"):
            checks.positive_span(getattr(self, name), name)
        for name in ("handler", "settle", "lag"):
            if getattr(self, name) is not None:
                to_span(getattr(self, name), name)


class Throttle:
    """The running state of an AdaptiveDelay in one worker. It is pure: it sees only the load that it is called with."""

    def __init__(self, policy: AdaptiveDelay) -> None:
        self._policy = policy
        self._delay_us = 0
        self._settled = 0
        self._failed = 0

    def __call__(self, load: Load) -> float:
        policy = self._policy
        if self._is_bad(load):
            grown = round(self._delay_us * policy.factor)
            self._delay_us = min(to_span(policy.max, "max"), max(to_span(policy.first, "first"), grown))
        else:
            self._delay_us = max(0, self._delay_us - to_span(policy.step, "step"))
        self._settled, self._failed = load.settled, load.failed
        return self._delay_us / SECOND

    def _is_bad(self, load: Load) -> bool:
        policy = self._policy
        return (
            self._fails_too_often(load)
            or _is_over(load.handler_seconds, policy.handler)
            or _is_over(load.settle_seconds, policy.settle)
            or _is_over(load.lag_seconds, policy.lag)
        )

    def _fails_too_often(self, load: Load) -> bool:
        """Whether the share of errors since the last poll is above its mark; it is not if no attempt was settled."""
        settled, failed = load.settled - self._settled, load.failed - self._failed
        return self._policy.failures is not None and settled > 0 and failed / settled > self._policy.failures


def _is_over(measured: float | None, mark: Seconds | None) -> bool:
    return measured is not None and mark is not None and measured > to_span(mark, "mark") / SECOND


Answer: TypeAlias = Seconds | None
"""The answer of a hook: how long to wait before the next poll; None means not at all."""
Hook: TypeAlias = Callable[[Load], Answer | Awaitable[Answer]]
"""The function of the user's that decides how long to wait."""


def _wait_of(answer: Answer) -> float:
    return to_span(answer or 0, "backpressure") / SECOND


class Backpressure:
    """The backpressure of one worker, by a hook of the user's or an AdaptiveDelay."""

    def __init__(self, worker_context: WorkerContext, hook: Hook | AdaptiveDelay) -> None:
        self._worker_context = worker_context
        self._hook: Hook = Throttle(hook) if isinstance(hook, AdaptiveDelay) else hook

    async def wait_seconds(self, load: Load) -> float:
        """Asks the hook how many seconds to wait. If it raises or returns no duration, the error is reported and the
        answer is 0."""
        load = structs.replace(load, lag_seconds=await self._lag_seconds())
        try:
            answer = guarded(self._hook, load)
            seconds = await guarded_await(answer) if inspect.isawaitable(answer) else answer
            return guarded(_wait_of, seconds)
        except Exception as error:
            self._worker_context.events.report(error, "backpressure")
            return 0.0

    async def _lag_seconds(self) -> float:
        """Measures one turn of the event loop, in which everything that was ready to run has run."""
        began, turned = self._worker_context.runtime.monotonic(), asyncio.Event()
        self._worker_context.loop.call_soon(turned.set)
        await turned.wait()
        return self._worker_context.runtime.monotonic() - began
