"""Asks a hook, or an AdaptiveDelay, how long to wait before the next poll. It can delay, never disturb."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import structs

from ropewalk.domain.time import SECOND, Seconds, to_span
from ropewalk.worker.context import Workbench
from ropewalk.worker.policies.adaptive import AdaptiveDelay, Throttle
from ropewalk.worker.policies.load import Load

Asked: TypeAlias = Seconds | None
Hook: TypeAlias = Callable[[Load], Asked | Awaitable[Asked]]


class Backpressure:
    def __init__(self, bench: Workbench, hook: Hook | AdaptiveDelay) -> None:
        self._bench = bench
        self._hook: Hook = Throttle(hook) if isinstance(hook, AdaptiveDelay) else hook

    async def wait_seconds(self, load: Load) -> float:
        """0 where the hook raises, or answers with what is no duration: that is reported."""
        load = structs.replace(load, lag_seconds=await self._lag_seconds())
        try:
            answer = self._hook(load)
            seconds = await answer if inspect.isawaitable(answer) else answer
            return to_span(seconds or 0, "backpressure") / SECOND
        except Exception as error:
            self._bench.events.report(error, "backpressure")
            return 0.0

    async def _lag_seconds(self) -> float:
        """One turn of the loop: everything that was ready to run has run."""
        began, turned = self._bench.runtime.monotonic(), asyncio.Event()
        self._bench.loop.call_soon(turned.set)
        await turned.wait()
        return self._bench.runtime.monotonic() - began
