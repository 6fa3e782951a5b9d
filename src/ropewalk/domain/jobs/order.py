"""The order in which ready jobs are claimed: by two sort keys within a line, and in turns between the lines.

With ageing, which is the default, each point of priority is worth 36 s of waiting: a job with priority HIGH (100) is an
hour ahead of one with NORMAL, and no job waits for ever. With strict order the priority alone decides. In both cases
the sort keys are fixed when the job becomes due, so an index of a store has the order, and nothing is sorted again as
time passes.

A line is all ready jobs of one tenant and queue. A claim takes one job from each line in turn, and each claim begins
one line further than the one before, so that many jobs in one line cannot keep back the jobs in another. The lines are
iterators, which a store reads only as far as the claim needs jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias, TypeVar

from ropewalk.domain.jobs.flags import STRICT_ORDER
from ropewalk.domain.time import SECOND, Instant, Span

AGEING_STEP: Final[Span] = 36 * SECOND
"""With ageing, one point of priority is worth this much waiting."""


class Priority(IntEnum):
    """Names for common priorities; any other whole number is allowed, too."""

    CRITICAL = 200
    HIGH = 100
    NORMAL = 0
    LOW = -100
    BULK = -200


class OrderKey(NamedTuple):
    """The two sort keys of a job; the job with the smaller key is claimed first."""

    prio_key: int
    """The negative priority of a job with strict order; 0 with ageing."""
    time_key: Instant
    """The instant at which the job is due; with ageing its priority makes it earlier or later."""


def order_key(priority: int, run_at: Instant, flags: int) -> OrderKey:
    """Returns the sort keys of a job with this priority that is due at `run_at`."""
    if flags & STRICT_ORDER:
        return OrderKey(-priority, run_at)
    return OrderKey(0, run_at - priority * AGEING_STEP)


T = TypeVar("T")

TenantQueue: TypeAlias = tuple[str, str]
"""A line, named by (tenant, queue)."""


def first_line(lines: Sequence[TenantQueue], first: TenantQueue | None, turn: int) -> int:
    """Returns the index of the line with which a claim begins, modulo the number of lines.

    It is the line that the worker wants first, if there is one, or else the next line with every `turn`.
    """
    return lines.index(first) if first in lines else turn


def take_turns(lines: Sequence[Iterator[T]], start: int) -> Iterator[T]:
    """Yields one job from each line in turn until all lines are empty, beginning with line `start` modulo their
    number."""
    if not lines:
        return
    first = start % len(lines)
    waiting = [*lines[first:], *lines[:first]]
    while len(waiting) > 1:
        not_empty: list[Iterator[T]] = []
        for line in waiting:
            for item in line:
                yield item
                not_empty.append(line)
                break
        waiting = not_empty
    for line in waiting:
        yield from line
