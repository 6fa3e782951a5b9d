"""Asks a hook, or an AdaptiveDelay, how long to wait before the next poll. It can delay, never disturb.

What a worker knows about itself when it asks whether to poll.

AdaptiveDelay: poll less often while things go badly. Additive decrease, multiplicative increase; pure.
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
    slots: int
    """how many handlers may run at once"""
    running: int
    """jobs that run now; of a batch every item"""
    buffered: int
    """jobs that are claimed and wait for a slot"""
    settled: int
    """attempts settled since the worker started, however they ended"""
    failed: int
    """of those settled the ones that ended in an error"""
    handler_seconds: float | None
    """how long a handler takes, smoothed; None before the first has ended, like the next"""
    settle_seconds: float | None
    """how long the store took to accept the last results"""
    lag_seconds: float
    """how long the event loop takes to come round, just now"""
    last_claim: int
    """how many jobs the last poll brought"""


class AdaptiveDelay(Struct, frozen=True, kw_only=True):
    """`app.worker(backpressure=AdaptiveDelay(failures=0.2, lag=0.05))`. Each signal that is not None is watched:

    failures: the share of attempts that ended in an error since the last poll; handler: how long handlers take; settle:
    how long the store takes to accept results; lag: how late the event loop is. One of them above its mark is bad: the
    delay is `first`, then `factor` times what it was, up to `max`. Otherwise it is `step` less, down to none.
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
    """An AdaptiveDelay in one worker."""

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
        """Nothing settled is no failure."""
        settled, failed = load.settled - self._settled, load.failed - self._failed
        return self._policy.failures is not None and settled > 0 and failed / settled > self._policy.failures


def _is_over(measured: float | None, mark: Seconds | None) -> bool:
    return measured is not None and mark is not None and measured > to_span(mark, "mark") / SECOND


Asked: TypeAlias = Seconds | None
Hook: TypeAlias = Callable[[Load], Asked | Awaitable[Asked]]


def _wait_of(answer: Asked) -> float:
    return to_span(answer or 0, "backpressure") / SECOND


class Backpressure:
    def __init__(self, worker_context: WorkerContext, hook: Hook | AdaptiveDelay) -> None:
        self._worker_context = worker_context
        self._hook: Hook = Throttle(hook) if isinstance(hook, AdaptiveDelay) else hook

    async def wait_seconds(self, load: Load) -> float:
        """0 where the hook raises, or answers with what is no duration: that is reported."""
        load = structs.replace(load, lag_seconds=await self._lag_seconds())
        try:
            answer = guarded(self._hook, load)
            seconds = await guarded_await(answer) if inspect.isawaitable(answer) else answer
            return guarded(_wait_of, seconds)
        except Exception as error:
            self._worker_context.events.report(error, "backpressure")
            return 0.0

    async def _lag_seconds(self) -> float:
        """One turn of the loop: everything that was ready to run has run."""
        began, turned = self._worker_context.runtime.monotonic(), asyncio.Event()
        self._worker_context.loop.call_soon(turned.set)
        await turned.wait()
        return self._worker_context.runtime.monotonic() - began
