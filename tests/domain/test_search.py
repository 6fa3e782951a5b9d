"""Which jobs a filter means, and cursors that survive the round trip but not tampering."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import State, Status
from ropewalk.domain.search import Filter, Order, decode_cursor, encode_cursor, matches, position_of
from ropewalk.errors import InvalidInput
from tests.domain.records import NOW, a_job, in_status

# field, values that find the job below, values that do not
FIELDS: list[tuple[str, list[Any], list[Any]]] = [
    ("types", [("email",), ("fax", "email")], [(), ("fax",), ("e",)]),
    ("states", [(State.FAILED,)], [(), (State.COMPLETED, State.SCHEDULED)]),
    ("queues", [("slow",)], [(), ("default",)]),
    ("priorities", [(5,), (4, 5)], [(), (0,)]),
    ("tags", [{}, {"city": "Oslo"}, {"city": "Oslo", "size": "xl"}], [{"city": "Rome"}, {"town": "Oslo"}]),
    ("created_after", [NOW - 1], [NOW]),
    ("created_before", [NOW + 1], [NOW]),
    ("updated_after", [NOW - 1], [NOW]),
    ("workflow_id", ["wf-1"], ["wf"]),
    ("group_id", ["group-1"], ["job-1"]),
    ("parent_id", ["parent-1"], ["job-1"]),
    ("correlation_id", ["corr-1"], ["corr"]),
    ("error_categories", [(Category.TEMPORARY,)], [(), (Category.TIMEOUT,)]),
    ("error_codes", [("E42",)], [(), ("E4",)]),
    ("text", ["", "job-1", "job", "em", "key-", "corr-1", "E42"], ["ob-1", "E4", "slow", "oops"]),
]


def a_failed_job() -> JobRecord:
    job = in_status(
        Status.FAILED,
        queue="slow",
        priority=5,
        tags={"city": "Oslo", "size": "xl"},
        workflow_id="wf-1",
        group_id="group-1",
        parent_id="parent-1",
        correlation_id="corr-1",
    )
    job.idempotency_key = "key-1"
    return job


@pytest.mark.parametrize(("field", "hits", "misses"), FIELDS)
def test_every_field_of_a_filter(field: str, hits: list[Any], misses: list[Any]) -> None:
    job = a_failed_job()
    for wanted in hits:
        assert matches(job, Filter(**{field: wanted}), NOW), wanted
    for wanted in misses:
        assert not matches(job, Filter(**{field: wanted}), NOW), wanted


def test_every_field_is_in_the_table() -> None:
    assert [field for field, _, _ in FIELDS] == list(Filter.__struct_fields__)


def test_all_that_is_set_must_hold() -> None:
    job = a_failed_job()
    assert matches(job, Filter(types=("email",), queues=("slow",)), NOW)
    assert not matches(job, Filter(types=("email",), queues=("default",)), NOW)


def test_a_bare_job_matches_nothing_it_lacks() -> None:
    job = a_job()
    assert matches(job, Filter(), NOW)
    for wanted in (Filter(error_codes=("E42",)), Filter(error_categories=(*Category,)), Filter(workflow_id="wf-1")):
        assert not matches(job, wanted, NOW)


def test_a_root_is_found_by_the_group_it_opens() -> None:
    assert matches(a_job(), Filter(group_id="job-1"), NOW)


def test_states_are_judged_at_the_given_time() -> None:
    job = a_job(delay_us=10)
    assert matches(job, Filter(states=(State.DELAYED,)), NOW)
    assert matches(job, Filter(states=(State.SCHEDULED,)), NOW + 10)


@pytest.mark.parametrize("order", Order)
def test_a_position_sorts_by_what_the_order_names(order: Order) -> None:
    job = a_job()
    job.updated_at = NOW + 5
    assert position_of(job, order) == ((NOW + 5, 7) if order is Order.UPDATED_DESC else (7, 7))


@example(Order.CREATED_ASC, 2**63 - 1, 0)
@given(st.sampled_from(Order), st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_cursors_round_trip(order: Order, value: int, seq: int) -> None:
    cursor = encode_cursor(order, (value, seq))
    assert decode_cursor(cursor, order) == (value, seq)
    assert cursor.isascii()
    assert not set(cursor) & set("+/=&? ")


def forged(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "not a cursor",
        "ĉursor",
        "\ud800",
        forged("[]"),
        forged('["created_asc",1]'),
        forged('["created_asc",1,2,3]'),
        forged('["sideways",1,2]'),
        forged('["created_asc","1",2]'),
        forged('["created_asc",1.5,2]'),
        forged('["created_asc",9223372036854775808,2]'),
        forged('["created_asc",2,-9223372036854775809]'),
    ],
)
def test_a_cursor_nobody_made_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput, match="cursor") as refused:
        decode_cursor(cursor, Order.CREATED_ASC)
    assert refused.value.field == "cursor"


@given(st.text())
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    try:
        decode_cursor(text, Order.CREATED_ASC)
    except InvalidInput as refused:
        assert refused.field == "cursor"


def test_a_cursor_belongs_to_its_order() -> None:
    with pytest.raises(InvalidInput, match="order=created_asc, not updated_desc"):
        decode_cursor(encode_cursor(Order.CREATED_ASC, (1, 1)), Order.UPDATED_DESC)
