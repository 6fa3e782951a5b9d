"""Job types that only remote workers run in these tests."""

from __future__ import annotations

from typing import Final

from ropewalk import Backoff, Context, job


@job(backoff=Backoff.constant(0))
async def add(a: int, b: int) -> int:
    return a + b


@job(lease=1, max_attempts=1)
async def hurried() -> None:
    """A type with the shortest possible lease, and no second attempt."""


@job(timeout=0.2, lease=1, backoff=Backoff.constant(0))
async def bounded() -> None:
    """A type whose attempts may take a fifth of a second."""


@job
async def undo(ctx: Context, a: int) -> None:
    """Compensates a failed `doomed`."""


@job(on_failure=undo)
async def doomed(a: int) -> None:
    """A type with a compensation."""


@job
async def copy(data: bytes) -> bytes:
    return data


REMOTE_JOBS: Final = (add, hurried, bounded, undo, doomed, copy)
