"""Work for many at once that one of them makes fail: each is tried alone, so that only that one stays behind."""

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
    """The answers of `work`, of which there is one where it succeeds for all together.

    A member that fails alone is told to `failed`. An absent store, or one that refuses everything, is no fault of a
    member, and is raised.
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
