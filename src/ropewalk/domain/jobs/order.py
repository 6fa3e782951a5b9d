"""In which order ready jobs are claimed, as two static sort keys.

With ageing (the default) each point of priority is worth 36 s of waiting: HIGH (100) is an hour ahead of NORMAL
and nothing starves. Without, priority decides strictly. Either way the key is fixed when the job becomes due,
so an index answers it and nothing is re-sorted as time passes.

How several lines of ready jobs become one stream of claims.

A line is one (tenant, queue): inside it order is strict. Between lines the claim takes one from each in turn and
starts one further every time, so a flood on one cannot starve another. Streams are lazy: a store hands in
iterators that read ahead no further than they are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias, TypeVar

from ropewalk.domain.jobs.flags import STRICT_ORDER
from ropewalk.domain.time import SECOND, Instant, Span

AGEING_STEP: Final[Span] = 36 * SECOND


class Priority(IntEnum):
    CRITICAL = 200
    HIGH = 100
    NORMAL = 0
    LOW = -100
    BULK = -200


class OrderKey(NamedTuple):
    prio_key: int
    time_key: Instant


def order_key(priority: int, run_at: Instant, flags: int) -> OrderKey:
    if flags & STRICT_ORDER:
        return OrderKey(-priority, run_at)
    return OrderKey(0, run_at - priority * AGEING_STEP)


T = TypeVar("T")

TenantQueue: TypeAlias = tuple[str, str]
"""(tenant, queue): order is strict within it"""


def start_of(lines: Sequence[TenantQueue], first: TenantQueue | None, turn: int) -> int:
    """Where the turns begin: with the one that is to be first, if it is there, else one further every time."""
    return lines.index(first) if first in lines else turn


def take_turns(lines: Sequence[Iterator[T]], start: int) -> Iterator[T]:
    """One from each line in turn, beginning with line `start` (modulo their number), until all are empty."""
    if not lines:
        return
    first = start % len(lines)
    waiting = [*lines[first:], *lines[:first]]
    while len(waiting) > 1:
        still: list[Iterator[T]] = []
        for line in waiting:
            for item in line:
                yield item
                still.append(line)
                break
        waiting = still
    for line in waiting:
        yield from line
