"""The loop around a service: run once, wait, again; at once again while there is more than one batch to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ropewalk.ports.runtime import Runtime


async def every(seconds: float, run_once: Callable[[], Awaitable[bool]], runtime: Runtime) -> None:
    """`run_once` answers whether it left work behind. Waits are spread so that a fleet does not march in step."""
    while True:
        await runtime.sleep(seconds * (0.5 + runtime.random()))
        while await run_once():
            pass
