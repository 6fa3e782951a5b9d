"""How several lines of ready jobs become one stream of claims.

A line is one (tenant, queue): inside it order is strict. Between lines the claim takes one from each in turn and
starts one further every time, so a flood on one cannot starve another. Streams are lazy: a store hands in
iterators that read ahead no further than they are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Line: TypeAlias = tuple[str, str]
"""(tenant, queue): order is strict within it"""


def start_of(lines: Sequence[Line], first: Line | None, turn: int) -> int:
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
