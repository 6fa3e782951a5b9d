"""A job just submitted: its times, flags and defaults."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs import flags
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.record import CompensationSpec, IdempotencyKey, NewJob
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.time import HOUR
from tests.domain.records import NOW, a_job, a_new_job, in_status


@pytest.mark.parametrize(
    ("options", "run_at"),
    [
        ({}, NOW),
        ({"delay_us": HOUR}, NOW + HOUR),
        ({"run_at": NOW + 5}, NOW + 5),
        ({"run_at": NOW - 5}, NOW),
        ({"run_at": NOW + 5, "delay_us": HOUR}, NOW + 5),
    ],
    ids=["now", "a delay", "a time", "a past time is now", "a time wins over a delay"],
)
def test_when_it_runs(options: dict[str, int], run_at: int) -> None:
    job = a_job(**options, priority=5)
    assert job.run_at == run_at
    assert (job.prio_key, job.time_key) == order_key(5, run_at, 0)
    assert job.ready_at(run_at)
    assert job.ready_at(NOW) == (run_at == NOW)


@pytest.mark.parametrize(
    ("options", "deadline"),
    [({}, None), ({"ttl_us": 9}, NOW + 9), ({"deadline": 5}, 5), ({"deadline": 5, "ttl_us": 9}, 5)],
)
def test_a_deadline_wins_over_a_ttl(options: dict[str, int], deadline: int | None) -> None:
    assert a_job(**options).deadline == deadline


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 0),
        ({"key": IdempotencyKey(key="k")}, flags.KEYED),
        ({"on_failure": CompensationSpec(type="undo")}, flags.ON_FAILURE),
        ({"callback_url": "https://example.com/hook"}, flags.CALLBACK),
        ({"strict_order": True}, flags.STRICT_ORDER),
        ({"trace": f"00-{'1' * 32}-{'2' * 16}-00"}, flags.UNRECORDED),
        ({"trace": f"00-{'1' * 32}-{'2' * 16}-02 vendor=1"}, flags.UNRECORDED),
        ({"trace": f"00-{'1' * 32}-{'2' * 16}-01"}, 0),
        ({"trace": f"00-{'1' * 32}-{'2' * 16}-03 vendor=0"}, 0),
        ({"trace": "nonsense"}, 0),
        ({"strict_order": True, "key": IdempotencyKey(key="k")}, flags.STRICT_ORDER | flags.KEYED),
    ],
)
def test_flags_name_what_it_uses(options: dict[str, object], expected: int) -> None:
    job = a_job(**options)
    assert job.flags == expected
    assert flags.settles_alone(job.flags) == (expected in (0, flags.STRICT_ORDER, flags.UNRECORDED))


def test_flags_are_single_bits() -> None:
    bits = [
        flags.HAS_DEPENDANTS,
        flags.GROUPED,
        flags.KEYED,
        flags.CALLBACK,
        flags.ON_FAILURE,
        flags.STEPPED,
        flags.STRICT_ORDER,
    ]
    assert [bit.bit_count() for bit in bits] == [1] * len({*bits})


def test_a_new_record_begins_at_the_beginning() -> None:
    job = a_job()
    assert (job.seq, job.status, job.last_move, job.state_at(NOW)) == (7, Status.WAITING, Move.SUBMIT, State.SCHEDULED)
    assert (job.run, job.rev, job.attempt, job.crashes, job.fence) == (1, 1, 0, 0, 0)
    assert (job.priority, job.max_attempts, job.max_crashes, job.flags) == (0, 3, 3, 0)
    assert (job.ticket, job.start_rev, job.unmet, job.depth, job.format) == (0, 0, 0, 0, 1)
    assert not job.suspect
    assert (job.created_at, job.updated_at, job.started_at, job.finished_at) == (NOW, NOW, None, None)


SHAPED = {"key", "delay_us", "run_at", "ttl_us", "strict_order", "inherits_priority", "gate", "report_orphan"}
"""fields of a submission that are stored in another shape"""


def test_everything_submitted_is_stored() -> None:
    new = a_new_job(
        tenant="acme",
        queue="slow",
        priority=3,
        max_attempts=9,
        max_crashes=8,
        timeout_us=7,
        lease_us=6,
        deadline=NOW + 5,
        key=IdempotencyKey(key="k"),
        correlation_id="c",
        tags={"a": "b"},
        workflow_id="w",
        workflow_type="wt",
        group_id="g",
        parent_id="p",
        spawn_key="s",
        on_failure=CompensationSpec(type="undo"),
        callback_url="https://example.com/hook",
        fairness="f",
        trace="t",
    )
    job = a_job(**{name: getattr(new, name) for name in NewJob.__struct_fields__})
    for name in set(NewJob.__struct_fields__) - SHAPED:
        assert getattr(job, name) == getattr(new, name), name
    assert job.idempotency_key == "k"


@pytest.mark.parametrize("status", Status)
def test_terminal_and_ready_follow_the_status(status: Status) -> None:
    job = in_status(status)
    assert job.terminal == (status not in (Status.WAITING, Status.RUNNING))
    assert job.ready_at(NOW) == (status is Status.WAITING)
