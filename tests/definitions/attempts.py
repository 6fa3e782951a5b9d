"""A context to call handlers with, and what their return value comes to."""

from __future__ import annotations

from typing import Any

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.results.returned import outcome_of_return
from ropewalk.domain.jobs.outcome import Completed
from ropewalk.domain.jobs.record import NewJob, new_record
from ropewalk.domain.jobs.transition import claim
from ropewalk.domain.time import SECOND
from ropewalk.domain.workflow.completion import CompletionPlan
from tests.definitions.ports import FakeAttempt

NOW = 1_800_000_000 * SECOND


def attempt_of(job_type: JobType[..., Any, Any], **fields: Any) -> FakeAttempt:
    new = NewJob(**{"id": "parent", "type": job_type.name, "input": b"{}", **fields})
    job = new_record(new, seq=1, now=NOW)
    claim(job, owner="w", ticket=1, epoch=0, lease_us=SECOND, now=NOW)
    return FakeAttempt(job, job_type)


def completed(ctx: Context, value: object, *, strict: bool = True) -> Completed:
    port = ctx.port
    outcome = outcome_of_return(port.job_type, ctx, value, port.bounds, strict=strict)
    assert isinstance(outcome, Completed), outcome
    return outcome


def plan_of(ctx: Context, value: object) -> CompletionPlan:
    plan = completed(ctx, value).plan
    assert plan is not None
    return plan
