"""Every cause a job is not running, and that the sentence says what one needs to know."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec import structs

from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs import misfit
from ropewalk.domain.jobs.record import CancelRequest, JobRecord
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.jobs.transition import lose, settle
from ropewalk.domain.limits.fleet_limit import EVERY_TENANT, FlowLimit
from ropewalk.domain.limits.headroom import FullLimit
from ropewalk.domain.limits.rate import Rate
from ropewalk.domain.time import SECOND
from ropewalk.domain.why import Cause, WhyInputs, explain
from ropewalk.domain.workflow.completion import Suspension
from tests.domain.records import NOW, OOPS, a_job, asking, in_status, running

CALM = WhyInputs(paused=False, served=True, ahead=3)
FAMILY = WhyInputs(paused=False, served=True, ahead=3, waits_for=("ann",))
NOBODY = WhyInputs(paused=False, served=False, ahead=3)
FULL = WhyInputs(
    paused=False,
    served=True,
    ahead=3,
    full=(
        FullLimit(
            limit=FlowLimit(tenant="t", kind="key", name="c:*", concurrency=2), name="c:1", in_use=2, next_at=None
        ),
    ),
)
FULL_FOR_ALL = WhyInputs(
    paused=False,
    served=True,
    ahead=3,
    full=(
        FullLimit(
            limit=FlowLimit(tenant=EVERY_TENANT, kind="key", name="c", concurrency=2), name="c", in_use=7, next_at=None
        ),
    ),
)
TOO_OFTEN = WhyInputs(
    paused=False,
    served=True,
    ahead=3,
    full=(
        FullLimit(
            limit=FlowLimit(tenant="t", kind="queue", name="q", rate=Rate(5, per=60)),
            name="q",
            in_use=0,
            next_at=NOW + 7_500_000,
        ),
    ),
)
IDLE = WhyInputs(paused=False, served=True, ahead=0, free=1)
PAUSED = WhyInputs(paused=True, served=False, ahead=3)


def touched(job: JobRecord) -> JobRecord:
    job.updated_at += 60 * SECOND
    return job


def cancelling(job: JobRecord) -> JobRecord:
    job.cancel = CancelRequest(None, force=False, at=NOW)
    return job


def refused(job: JobRecord) -> JobRecord:
    error = ErrorInfo(category=Category.PERMANENT, code="bad_input", message="no such argument")
    for worker in ("one", "two", "one"):
        job.error = misfit.refused(job.error, worker, NOW).recorded_in(error)
    return job


def damaged(job: JobRecord) -> JobRecord:
    job.damaged = ("tags", "gate")
    return job


def blocked(job: JobRecord) -> JobRecord:
    job.unmet = 2
    return job


def listening(job: JobRecord) -> JobRecord:
    wait = Suspension(position=0, name="call", signal="ring", span_us=90 * SECOND)
    settle(job, asking(job, Move.SUSPEND, suspension=wait), NOW)
    return job


def retrying(job: JobRecord) -> JobRecord:
    settle(job, asking(job, Move.RETRY, error=OOPS, delay_us=90 * SECOND), NOW)
    return job


def deferred(job: JobRecord) -> JobRecord:
    settle(job, asking(job, Move.DEFER, delay_us=90 * SECOND), NOW)
    return job


def lost(job: JobRecord) -> JobRecord:
    lose(job, started=True, now=NOW)
    return job


CASES = [
    (
        touched(in_status(Status.COMPLETED)),
        CALM,
        NOW,
        State.COMPLETED,
        "finished",
        "completed at 2027-01-15 08:00:00 UTC",
    ),
    (in_status(Status.FAILED), CALM, NOW, State.FAILED, "finished", "failed at 2027-01-15 08:00:00 UTC: oops"),
    (running(), CALM, NOW, State.RUNNING, "running", "worker-a runs attempt 1"),
    (running(), CALM, NOW + 30 * SECOND - 1, State.RUNNING, "running", "worker-a"),
    (running(), CALM, NOW + 30 * SECOND, State.RUNNING, "worker_silent", "worker-a stopped renewing"),
    (cancelling(running()), CALM, NOW, State.RUNNING, "cancelling", "worker-a was asked to cancel"),
    (structs.replace(a_job(), format=99), CALM, NOW, State.SCHEDULED, "newer_release", "format 99"),
    (blocked(a_job()), CALM, NOW, State.PENDING, "dependencies", "2 unfinished dependencies"),
    (blocked(a_job()), FAMILY, NOW, State.PENDING, "dependencies", "2 unfinished dependencies: ann, …"),
    (
        listening(running()),
        CALM,
        NOW,
        State.PENDING,
        "signal",
        "app.signal('job-1', 'ring'), until 2027-01-15 08:01:30",
    ),
    (retrying(running()), CALM, NOW, State.RETRYING, "retrying", "attempt 1 failed (oops); it runs again in 90.0 s"),
    (deferred(running()), CALM, NOW, State.DELAYED, "delayed", "in 90.0 s"),
    (a_job(delay_us=SECOND), CALM, NOW, State.DELAYED, "delayed", "in 1.0 s, at 2027-01-15 08:00:01 UTC"),
    (a_job(queue="slow"), PAUSED, NOW, State.SCHEDULED, "paused", "app.resume('slow')"),
    (a_job(), NOBODY, NOW, State.SCHEDULED, "no_worker", "serves type 'email' on queue 'default'"),
    (a_job(), FULL, NOW, State.SCHEDULED, "limit", "2 of at most 2 jobs of key 'c:1' are running"),
    (
        a_job(),
        FULL_FOR_ALL,
        NOW,
        State.SCHEDULED,
        "limit",
        "all 2 jobs that may run at once of key 'c', of all tenants",
    ),
    (
        a_job(),
        TOO_OFTEN,
        NOW,
        State.SCHEDULED,
        "limit",
        "queue 'q' may start 5 jobs in 60 s, and has; the next may in 7.5",
    ),
    (lost(running()), CALM, NOW, State.SCHEDULED, "suspect", "1 of 3"),
    (a_job(), CALM, NOW, State.SCHEDULED, "busy", "3 ready jobs"),
    (a_job(), IDLE, NOW + SECOND, State.SCHEDULED, "busy", "0 ready jobs"),
    (a_job(), IDLE, NOW + 2 * SECOND, State.SCHEDULED, "held_back", "accept= declines the job"),
    (
        refused(a_job()),
        CALM,
        NOW,
        State.SCHEDULED,
        "misfit",
        "any worker that has tried it (2 so far): no such argument",
    ),
    (damaged(a_job()), CALM, NOW, State.SCHEDULED, "damaged", "(tags, gate)"),
    (a_job(deadline=NOW), NOBODY, NOW, State.SCHEDULED, "expired", "its deadline passed at 2027-01-15 08:00:00 UTC"),
    (a_job(deadline=NOW + 1), CALM, NOW, State.SCHEDULED, "busy", "3 ready jobs"),
]


@pytest.mark.parametrize(("job", "around", "now", "state", "cause", "told"), CASES)
def test_one_named_cause(*, job: JobRecord, around: WhyInputs, now: int, state: State, cause: str, told: str) -> None:
    why = explain(job, around, now)
    assert (why.state, why.cause) == (state, cause)
    assert told in why.explanation


def test_every_cause_is_in_the_table() -> None:
    assert {cause for *_, cause, _ in CASES} == set(get_args(Cause))
