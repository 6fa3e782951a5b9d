"""Work on many members at once: if it fails, each member is tried alone, so that only the one that fails is left
out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ropewalk.errors import StoreRefused, StoreUnavailable

M = TypeVar("M")
T = TypeVar("T")


async def together_or_alone(
    members: Sequence[M],
    work: Callable[[Sequence[M]], Awaitable[T]],
    failed: Callable[[M, Exception], object],
) -> list[T]:
    """Calls `work` for all members together, and for each of them alone if that fails. Returns the answers.

    `failed` is called with each member that fails alone. If the store is away or refuses everything, no member is at
    fault, and the error is raised.
    """
    try:
        return [await work(members)]
    except (StoreUnavailable, StoreRefused):
        raise
    except Exception as error:
        if len(members) == 1:
            failed(members[0], error)
            return []
    return [answer for each in members for answer in await together_or_alone([each], work, failed)]
