"""Which tickets count as started."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.lease import UNANSWERED_MAX, StartedTickets, TicketRange, merged_ranges


def test_everything_up_to_a_number_but_for_what_is_named() -> None:
    known = StartedTickets(upto=9, unstarted=frozenset({2}), unanswered=(TicketRange(4, 5), TicketRange(9, 20)))
    assert [ticket for ticket in range(12) if known.covers(ticket)] == [0, 1, 3, 6, 7, 8]


@pytest.mark.parametrize(
    ("known", "more", "both"),
    [
        ([], [(1, 3)], [(1, 3)]),
        ([(1, 3)], [(4, 6)], [(1, 6)]),
        ([(1, 3)], [(5, 6)], [(1, 3), (5, 6)]),
        ([(5, 6)], [(1, 2), (2, 4)], [(1, 6)]),
        ([(1, 9)], [(2, 3)], [(1, 9)]),
        ([(1, 2)], [], [(1, 2)]),
    ],
)
def test_neighbours_are_put_together(
    known: list[tuple[int, int]], more: list[tuple[int, int]], both: list[tuple[int, int]]
) -> None:
    assert merged_ranges([TicketRange(*each) for each in known], [TicketRange(*each) for each in more]) == tuple(
        TicketRange(*each) for each in both
    )


def test_only_the_newest_are_kept() -> None:
    ranges = [TicketRange(10 * number, 10 * number) for number in range(UNANSWERED_MAX + 3)]
    assert merged_ranges(ranges, []) == tuple(ranges[3:])
