"""The value of a group, contribution by contribution."""

from __future__ import annotations

from functools import reduce
from itertools import permutations
from typing import get_args

import pytest

from ropewalk.domain.workflow.group_value import KEPT_ONE_BY_ONE, NOTHING, Contribution, GroupValue, Reducer, contribute

FOLDS: tuple[Reducer, ...] = ("list", "count", "sum", "min", "max", "merge", "custom")


def adds(value: bytes | None, reducer: Reducer = "last", job_type: str = "t") -> Contribution:
    return Contribution(type=job_type, value=value, reducer=reducer)


def after(*added: Contribution) -> GroupValue:
    return reduce(contribute, added, NOTHING)


def test_nobody_contributed() -> None:
    assert (NOTHING.reducer, NOTHING.value, NOTHING.version, NOTHING.contributions) == (None, None, 0, 0)


def test_the_last_one_counts() -> None:
    held = after(adds(b"1"), adds(b"2"), adds(b"3", job_type="u"))
    assert (held.reducer, held.value, held.type) == ("last", b"3", "u")
    assert (held.version, held.contributions) == (3, 3)


def test_once_final_nothing_changes_it() -> None:
    held = after(adds(b"1"), adds(b"2", "final"))
    assert (held.reducer, held.value) == ("final", b"2")
    for reducer in get_args(Reducer):
        assert contribute(held, adds(b"3", reducer)) == held


def test_a_final_value_beats_a_fold() -> None:
    assert after(adds(b"1", "sum"), adds(b'"done"', "final")).value == b'"done"'


@pytest.mark.parametrize(("reducer", "told"), [("count", b"3"), ("sum", b"6"), ("min", b"-1"), ("max", b"5")], ids=str)
def test_numbers_fold_in_any_order(reducer: Reducer, told: bytes) -> None:
    for values in permutations((b"5", b"-1", b"2")):
        held = after(*(adds(value, reducer) for value in values))
        assert (held.reducer, held.value, held.contributions, held.conflict) == (reducer, told, 3, None)


def test_broken_numbers_stay_exact_enough_and_nothing_counts_as_nought() -> None:
    assert after(adds(b"0.5", "sum"), adds(None, "sum"), adds(b"2", "sum")).value == b"2.5"


def test_counting_does_not_look_at_values() -> None:
    assert after(adds(None, "count"), adds(b'"x"', "count")).value == b"2"


@pytest.mark.parametrize("reducer", sorted(KEPT_ONE_BY_ONE))
def test_what_its_reader_puts_together_is_only_counted_here(reducer: Reducer) -> None:
    held = after(adds(b"1", reducer), adds(b"2", reducer))
    assert (held.value, held.contributions, held.version) == (None, 2, 2)


def test_a_function_brings_its_own_fold() -> None:
    held = after(adds(b"1", "custom"), adds(b"7", "custom"))
    assert (held.value, held.version) == (b"7", 2)


@pytest.mark.parametrize("reducer", FOLDS)
def test_a_plain_value_neither_replaces_nor_spoils_a_fold(reducer: Reducer) -> None:
    """Whether it came before or after: the fold is of what was appended."""
    alone = after(adds(b"4", reducer))
    before = after(adds(b"9"), adds(b"4", reducer))
    afterwards = after(adds(b"4", reducer), adds(b"9"))
    assert afterwards == alone
    assert (before.reducer, before.value, before.conflict) == (alone.reducer, alone.value, None)


def test_appends_that_fold_differently_are_a_conflict_that_names_both() -> None:
    for first in FOLDS:
        for second in FOLDS:
            held = after(adds(b"1", first, "a"), adds(b"2", second, "b"))
            if first == second:
                assert held.conflict is None
            else:
                assert held.conflict is not None
                assert all(word in held.conflict for word in (f"a contributes with append={first!r}", repr(second)))


def test_the_first_conflict_is_the_one_that_is_told() -> None:
    held = after(adds(b"1", "sum", "a"), adds(b"2", "min", "b"), adds(b"3", "max", "c"))
    assert held.conflict is not None
    assert "b with" in held.conflict


def test_a_fold_that_failed_leaves_no_value_to_tell() -> None:
    failed = Contribution(type="u", value=None, reducer="custom", error="it raised")
    held = after(adds(b"1", "custom"), failed, adds(b"2", "custom"))
    assert (held.conflict, held.version, held.contributions) == ("it raised", 3, 3)
    assert after(adds(b"1", "custom"), failed).value == b"1", "as it was"
    assert after(adds(b"1"), failed).value is None, "a plain value is no fold"
    assert contribute(after(adds(b"1", "final")), failed) == after(adds(b"1", "final"))


@pytest.mark.parametrize("parts", [(b"1e308", b"1e308"), (b"1.0", str(10**309).encode()), (b"-1e308", b"-1e308")])
def test_a_sum_over_the_largest_float_cannot_be_told(parts: tuple[bytes, bytes]) -> None:
    held = after(*(adds(each, "sum") for each in parts), adds(b"1", "sum"))
    assert held.conflict is not None
    assert held.conflict.startswith("append='sum' of t: ")
    assert held.contributions == 3


def test_a_sum_of_ints_is_exact_at_any_size() -> None:
    assert after(adds(str(10**308).encode(), "sum"), adds(b"1", "sum")).value == str(10**308 + 1).encode()
