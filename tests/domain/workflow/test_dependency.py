"""When a gate opens and when it no longer can, against a definition that looks at every possible future."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import get_args

import pytest

from ropewalk.domain.jobs.states import TERMINAL, Status
from ropewalk.domain.workflow.dependency import Ending, Gate, NamedCondition, Of, Opening, ending_of, needed, opening

Parents = tuple[Ending | None, ...]
"""how each ended; None has not yet"""


def satisfied(parents: Parents, need: int, of: Of) -> bool:
    if of == "done":
        return sum(each is not None for each in parents) >= need
    return sum(each is Ending.COMPLETED for each in parents) >= need


def futures(parents: Parents) -> Iterator[Parents]:
    """Every way those that are open may yet end."""
    return product(*((each,) if each is not None else tuple(Ending) for each in parents))


def by_definition(parents: Parents, need: int, of: Of) -> Opening:
    if satisfied(parents, need, of):
        return Opening.OPEN
    if any(satisfied(future, need, of) for future in futures(parents)):
        return Opening.CLOSED
    return Opening.DOOMED


def counted(parents: Parents, need: int, of: Of) -> Gate:
    done = [each for each in parents if each is not None]
    return Gate(total=len(parents), need=need, of=of, done=len(done), ok=done.count(Ending.COMPLETED))


@pytest.mark.parametrize("total", [1, 2, 3, 4])
@pytest.mark.parametrize("of", get_args(Of))
def test_every_gate_over_every_combination_of_parents(total: int, of: Of) -> None:
    for need in range(1, total + 1):
        for parents in product((None, *Ending), repeat=total):
            assert opening(counted(parents, need, of)) is by_definition(parents, need, of), (need, parents)


@pytest.mark.parametrize("total", [1, 2, 3, 4])
def test_every_named_condition_says_what_its_name_does(total: int) -> None:
    for parents in product((None, *Ending), repeat=total):
        ok = [each is Ending.COMPLETED for each in parents]
        done = [each is not None for each in parents]
        holds: dict[NamedCondition, bool] = {
            "all_success": all(ok),
            "all_done": all(done),
            "any_done": any(done),
            "any_success": any(ok),
        }
        assert set(holds) == set(get_args(NamedCondition))
        for condition, open_ in holds.items():
            need, of = needed(condition, total)
            assert (opening(counted(parents, need, of)) is Opening.OPEN) == open_, (condition, parents)


def test_what_was_decided_stays_decided() -> None:
    """Whatever ends next, an open gate stays open and a doomed one doomed: nothing is ever taken back."""
    for need, of in product((1, 2, 3), get_args(Of)):
        for parents in product((None, *Ending), repeat=3):
            decided = opening(counted(parents, need, of))
            if decided is not Opening.CLOSED:
                assert {opening(counted(future, need, of)) for future in futures(parents)} == {decided}


@pytest.mark.parametrize("of", get_args(Of))
def test_a_gate_over_nothing_is_open(of: Of) -> None:
    assert opening(Gate(total=0, need=0, of=of)) is Opening.OPEN


def test_every_end_of_a_job_is_an_end_for_its_dependants() -> None:
    assert {status: ending_of(status) for status in TERMINAL} == {
        Status.COMPLETED: Ending.COMPLETED,
        Status.FAILED: Ending.FAILED,
        Status.DEAD_LETTER: Ending.FAILED,
        Status.CANCELLED: Ending.CANCELLED,
    }


@pytest.mark.parametrize("status", set(Status) - TERMINAL)
def test_a_live_job_has_not_ended(status: Status) -> None:
    with pytest.raises(AssertionError, match="is no ending"):
        ending_of(status)
