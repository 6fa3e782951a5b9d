"""The order of jobs that are submitted together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.workflow.graph import in_order
from ropewalk.errors import InvalidInput
from ropewalk.testing.contract.builders import gate_on, new_job


def node(name: str, *parents: str, tenant: str = "default") -> NewJob:
    return new_job(id=name, tenant=tenant, gate=gate_on(*parents) if parents else None)


def ids(jobs: list[NewJob]) -> list[str]:
    return [job.id for job in jobs]


def test_plain_jobs_stay_as_given() -> None:
    assert ids(in_order([node("b"), node("a"), node("b")])) == ["b", "a", "b"]


def test_parents_come_first_and_in_the_order_they_are_named() -> None:
    assert ids(in_order([node("d", "c", "b"), node("x"), node("b", "a"), node("a"), node("c")])) == list("cabdx")


def test_where_nothing_decides_it_is_as_given() -> None:
    given_ = [node("a"), node("c", "a"), node("b", "a"), node("d")]
    assert in_order(given_) == given_


def test_parents_outside_do_not_matter() -> None:
    assert ids(in_order([node("b", "elsewhere"), node("a")])) == ["b", "a"]


def test_another_tenants_job_of_the_same_name_is_another_job() -> None:
    assert ids(in_order([node("a", "b"), node("b", "a", tenant="other")])) == ["a", "b"]


def test_a_repeated_id_comes_last_so_that_it_is_judged() -> None:
    first, second = node("a", "b"), new_job("other", id="a")
    assert in_order([first, second, node("b")])[-1] is second


@pytest.mark.parametrize(
    ("jobs", "told"),
    [
        ([node("a", "a")], "a → a"),
        ([node("a", "b"), node("b", "a")], "a → b → a"),
        ([node("x", "a"), node("a", "b"), node("b", "c"), node("c", "a")], "a → b → c → a"),
        ([node("a", "x", "b"), node("x"), node("b", "x", "c"), node("c", "b")], "b → c → b"),
    ],
)
def test_a_circle_is_refused_by_name(jobs: list[NewJob], told: str) -> None:
    with pytest.raises(InvalidInput, match=f"wait for one another: {told}$") as refused:
        in_order(jobs)
    assert refused.value.field == "depends_on"


def test_ten_thousand_in_a_row() -> None:
    """Without recursion, from either end."""
    line = [node("0"), *(node(str(number), str(number - 1)) for number in range(1, 10_000))]
    assert in_order(line) == line
    assert in_order(line[::-1]) == line


@given(st.data())
def test_any_graph_without_a_circle_is_put_in_order(data: st.DataObject) -> None:
    """Each once, parents before children, and the same again from the result."""
    total = data.draw(st.integers(1, 12))
    jobs = [
        node(
            str(number),
            *map(str, data.draw(st.sets(st.integers(0, number - 1), max_size=4) if number else st.just(()))),
        )
        for number in range(total)
    ]
    order = in_order(data.draw(st.permutations(jobs)))
    place = {job.id: index for index, job in enumerate(order)}
    assert len(place) == len(order) == total
    for job in order:
        for parent in () if job.gate is None else job.gate.parents:
            assert place[parent.id] < place[job.id]
    assert in_order(order) == order
