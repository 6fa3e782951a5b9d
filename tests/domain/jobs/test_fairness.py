"""Turns between lines: nothing is lost, a line keeps its order, and nobody is starved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.domain.jobs.order import take_turns

Item = tuple[int, int]
"""(line, place in it)"""

lengths = st.lists(st.integers(0, 8), max_size=6)
starts = st.integers(-10, 10)


def lines_of(sizes: list[int]) -> list[Iterator[Item]]:
    return [iter([(line, place) for place in range(size)]) for line, size in enumerate(sizes)]


@given(lengths, starts)
def test_nothing_is_lost_and_every_line_keeps_its_order(sizes: list[int], start: int) -> None:
    taken = list(take_turns(lines_of(sizes), start))
    for line, size in enumerate(sizes):
        assert [item for item in taken if item[0] == line] == [(line, place) for place in range(size)]
    assert len(taken) == sum(sizes)


@given(lengths, starts, st.integers(0, 50))
def test_lines_that_still_have_work_got_the_same_share(sizes: list[int], start: int, limit: int) -> None:
    share = Counter(line for line, _ in islice(take_turns(lines_of(sizes), start), limit))
    unfinished = [share[line] for line, size in enumerate(sizes) if share[line] < size]
    assert not unfinished or max(unfinished) - min(unfinished) <= 1
    assert not unfinished or max(share.values(), default=0) <= min(unfinished) + 1


@given(st.lists(st.integers(1, 3), min_size=1, max_size=6), starts)
def test_the_line_whose_turn_it_is_goes_first(sizes: list[int], start: int) -> None:
    line, place = next(take_turns(lines_of(sizes), start))
    assert (line, place) == (start % len(sizes), 0)


def test_a_line_is_read_no_further_than_asked() -> None:
    read: list[str] = []

    def line(name: str) -> Iterator[str]:
        for place in range(100):
            read.append(f"{name}{place}")
            yield read[-1]

    assert list(islice(take_turns([line("a"), line("b")], 0), 3)) == read == ["a0", "b0", "a1"]
