"""The follow-up of a failed job: what it inherits, which arguments it gets, and that it is one per run."""

from __future__ import annotations

import msgspec
import pytest

from ropewalk.domain.failure import DEADLINE_EXCEEDED
from ropewalk.domain.jobs.record import CompensatedJob, CompensationSpec, NewJob
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.jobs.transition import expire, settle
from ropewalk.domain.time import SECOND
from ropewalk.domain.workflow.completion import compensation
from tests.domain.records import NOW, OOPS, a_job, asking, in_status


def compensating(follow_up: CompensationSpec | None, **options: object) -> NewJob | None:
    return compensation(in_status(Status.FAILED, on_failure=follow_up, **options))


def built(follow_up: CompensationSpec, **options: object) -> NewJob:
    job = compensating(follow_up, **options)
    assert job is not None
    return job


def test_without_a_follow_up_there_is_none() -> None:
    assert compensating(None) is None


def test_it_belongs_where_the_failed_job_belonged() -> None:
    job = built(
        CompensationSpec(type="undo"),
        tenant="acme",
        workflow_id="wf-1",
        workflow_type="order",
        correlation_id="corr-1",
        trace="trace-1",
        group_id="group-1",
    )
    assert (job.tenant, job.workflow_id, job.workflow_type) == ("acme", "wf-1", "order")
    assert (job.correlation_id, job.trace) == ("corr-1", "trace-1")
    assert (job.group_id, job.parent_id) == ("group-1", "job-1")


def test_a_root_is_the_group_of_its_follow_up() -> None:
    assert built(CompensationSpec(type="undo")).group_id == "job-1"


def test_its_options_are_its_own() -> None:
    second = CompensationSpec(type="page somebody")
    follow_up = CompensationSpec(
        type="undo",
        queue="urgent",
        priority=7,
        max_attempts=None,
        max_crashes=2,
        timeout_us=SECOND,
        backoff=Backoff.constant(1),
        on_failure=second,
    )
    job = built(follow_up, queue="slow", priority=-5, max_attempts=1)
    assert (job.type, job.queue, job.priority) == ("undo", "urgent", 7)
    assert (job.max_attempts, job.max_crashes, job.timeout_us, job.backoff) == (None, 2, SECOND, Backoff.constant(1))
    assert job.on_failure == second
    assert built(CompensationSpec(type="undo")).on_failure is None


def test_it_can_see_what_failed() -> None:
    origin = CompensatedJob(id="job-1", run=1, type="email", input=b'{"to":"ann","copies":2}', error=OOPS, started=True)
    assert built(CompensationSpec(type="undo")).origin == origin


def test_it_can_tell_a_job_that_never_started() -> None:
    job = a_job(on_failure=CompensationSpec(type="undo"), deadline=NOW)
    follow_up = expire(job, NOW).compensation
    assert follow_up is not None
    assert follow_up.origin is not None
    assert (follow_up.origin.started, follow_up.origin.error) == (False, DEADLINE_EXCEEDED)


def test_it_is_told_of_the_deadline_whatever_the_last_attempt_said() -> None:
    job = in_status(Status.RUNNING, on_failure=CompensationSpec(type="undo"), deadline=NOW + SECOND)
    follow_up = settle(job, asking(job, Move.RETRY, error=OOPS, delay_us=SECOND), NOW).compensation
    assert follow_up is not None
    assert follow_up.origin is not None
    assert (follow_up.origin.started, follow_up.origin.error) == (True, DEADLINE_EXCEEDED)


def test_its_id_follows_from_tenant_job_and_run() -> None:
    def id_of(*, run: int = 1, **options: object) -> str:
        record = in_status(Status.FAILED, on_failure=CompensationSpec(type="undo"), **options)
        record.run = run
        job = compensation(record)
        assert job is not None
        return job.id

    assert id_of() == id_of()
    assert len({id_of(), id_of(run=2), id_of(tenant="acme"), id_of(id="job-2")}) == 4


@pytest.mark.parametrize(
    ("follow_up", "arguments"),
    [
        (CompensationSpec(type="undo"), {"to": "ann", "copies": 2}),
        (CompensationSpec(type="undo", accepts=("to",)), {"to": "ann"}),
        (CompensationSpec(type="undo", accepts=("copies", "colour")), {"copies": 2}),
        (CompensationSpec(type="undo", accepts=()), {}),
        (CompensationSpec(type="undo", accepts=("to",), input=b'{"own":true}'), {"own": True}),
    ],
    ids=["all", "chosen by name", "a name it lacks", "none", "its own"],
)
def test_its_arguments(follow_up: CompensationSpec, arguments: dict[str, object]) -> None:
    assert msgspec.json.decode(built(follow_up).input) == arguments


def test_chosen_arguments_keep_their_bytes() -> None:
    follow_up = CompensationSpec(type="undo", accepts=("big",))
    assert built(follow_up, input=b'{"big":1.10,"to":"x"}').input == b'{"big":1.10}'
