"""Waiting for something that must not be left half-way, also by whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def to_its_end(work: Awaitable[T], when_cancelled: Callable[[], None] | None = None) -> T:
    """Its answer. A cancellation goes on once it has ended; `when_cancelled` may hasten that."""
    done = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError as error:
            cancelled = error
            if when_cancelled is not None:
                when_cancelled()
    if cancelled is not None:
        if not done.cancelled():
            done.exception()  # seen: the cancellation is the answer
        raise cancelled
    return done.result()
