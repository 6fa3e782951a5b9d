"""Which of the jobs that a worker claimed have started, as far as its store knows.

A worker numbers the jobs it claims, and tells with each claim up to which number they start. When the worker dies, the
store knows by this which jobs lose an attempt. Numbers that were asked for in a claim whose answer never arrived are
never used again: whatever the store gave out under them did not start.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Struct

UNANSWERED_MAX: Final = 256
"""so many ranges are remembered; the leases of still older ones ended long ago"""


class TicketRange(NamedTuple):
    """The tickets from `first` to `last`, both included."""

    first: int
    last: int

    def __contains__(self, ticket: object) -> bool:
        return isinstance(ticket, int) and self.first <= ticket <= self.last


class StartedTickets(Struct, frozen=True, array_like=True):
    """What a store knows about the starts of one worker."""

    upto: int = 0
    """Every ticket up to this one counts as started,"""
    unstarted: frozenset[int] = frozenset()
    """except for these, which others overtook in the worker's buffer,"""
    unanswered: tuple[TicketRange, ...] = ()
    """and except for those of claims whose answer the worker never got."""

    def covers(self, ticket: int) -> bool:
        """Whether the job with this ticket counts as started."""
        if ticket > self.upto or ticket in self.unstarted:
            return False
        return not any(ticket in each for each in self.unanswered)


def remembered(known: Iterable[TicketRange], more: Iterable[TicketRange]) -> tuple[TicketRange, ...]:
    """The ranges of both, in order, with neighbours put together."""
    merged: list[TicketRange] = []
    for each in sorted({*known, *more}):
        if merged and each.first <= merged[-1].last + 1:
            merged[-1] = TicketRange(merged[-1].first, max(merged[-1].last, each.last))
        else:
            merged.append(each)
    return tuple(merged[-UNANSWERED_MAX:])
