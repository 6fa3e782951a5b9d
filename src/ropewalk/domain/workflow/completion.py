"""What an attempt leaves behind it: the work that follows a completion, or where a suspended one goes on.

The follow-up of a job that became failed or dead_letter: built once per run, by any path that led there.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias
from uuid import UUID, uuid5

import msgspec
from msgspec import Struct

from ropewalk.domain.failure import WORKER_LOST
from ropewalk.domain.jobs.record import CompensatedJob, CompensationSpec, JobRecord, NewJob
from ropewalk.domain.time import DAY, Instant, Span
from ropewalk.domain.workflow.group_value import TAKE_THE_RESULT, Contribution

StepKind: TypeAlias = Literal["step", "sleep", "signal"]
SIGNAL_KNOWN_FOR: Final[Span] = DAY
"""how long the id of a signal is remembered: sent again within this time it is not stored again"""


def as_once_key(job_id: str, signal_id: str | None) -> str | None:
    """The key under which a signal is put once into the mailbox of a job; None for one without an id."""
    return None if signal_id is None else f"signal {signal_id} to {job_id}"


class CompletionPlan(Struct, frozen=True, kw_only=True):
    """Written in the transaction that completes the job, or not at all."""

    children: tuple[NewJob, ...] = ()
    """members of the completed job's scope; gates among them name one another by id"""
    continuation: NewJob | None = None
    contribution: Contribution | None = None


def leaves_only_a_result(plan: CompletionPlan | None) -> bool:
    """Whether a job that is in no group leaves nothing but its result: what it says about the group's value is that."""
    return plan is None or (
        _is_the_end(plan) and (plan.contribution is None or plan.contribution.reducer in TAKE_THE_RESULT)
    )


def leaves_only_a_contribution(plan: CompletionPlan | None) -> bool:
    """Whether a member of a scope leaves nothing but its result and what is to be added to the value of its group."""
    return plan is None or (_is_the_end(plan) and (plan.contribution is None or plan.contribution.reducer != "custom"))


def _is_the_end(plan: CompletionPlan) -> bool:
    return not plan.children and plan.continuation is None


class StepRecord(Struct, frozen=True, kw_only=True):
    """A durable step of a job, by its place in the handler. Finished unless it only says when a wait is over."""

    position: int
    name: str
    kind: StepKind
    value: bytes | None = None
    until: Instant | None = None
    """when a sleep is over, or a wait for a signal is given up"""
    finished: bool = True


class Suspension(Struct, frozen=True, kw_only=True):
    """The handler sleeps or waits for a signal: it gives its slot back and runs again from the top."""

    position: int
    name: str
    """of the step that waits"""
    signal: str | None = None
    """None: it sleeps"""
    span_us: Span | None = None
    """how long from now; None waits for the signal without an end"""
    until: Instant | None = None
    """When the wait is over, where an earlier suspension already set it. Where that is further away than `span_us`, the
    clock has been set back since, and `span_us` counts."""

    def until_at(self, now: Instant) -> Instant | None:
        if self.span_us is None:
            return self.until
        latest = now + self.span_us
        return latest if self.until is None else min(self.until, latest)

    def step_at(self, now: Instant) -> StepRecord:
        kind: StepKind = "sleep" if self.signal is None else "signal"
        return StepRecord(position=self.position, name=self.name, kind=kind, until=self.until_at(now), finished=False)


_NAMESPACE = UUID("6f0b3f0e-52c1-5f0a-9c55-0f6c2b7b0d8e")


def compensation(job: JobRecord) -> NewJob | None:
    """The job to insert together with the terminal transition, if the failed job named one.

    Its id follows from (tenant, job, run), so the same failure can never compensate twice.
    """
    follow_up = job.on_failure
    if follow_up is None:
        return None
    error = job.error or WORKER_LOST
    return NewJob(
        id=str(uuid5(_NAMESPACE, f"{job.tenant}/{job.id}/{job.run}")),
        type=follow_up.type,
        input=_arguments(follow_up, job),
        tenant=job.tenant,
        queue=follow_up.queue,
        priority=follow_up.priority,
        max_attempts=follow_up.max_attempts,
        max_crashes=follow_up.max_crashes,
        timeout_us=follow_up.timeout_us,
        backoff=follow_up.backoff,
        correlation_id=job.correlation_id,
        workflow_id=job.workflow_id,
        workflow_type=job.workflow_type,
        group_id=job.group_id or job.id,
        parent_id=job.id,
        on_failure=follow_up.on_failure,
        limit_key=follow_up.limit_key,
        origin=CompensatedJob(
            id=job.id, run=job.run, type=job.type, input=job.input, error=error, started=job.start_rev > 0
        ),
        trace=job.trace,
    )


def _arguments(follow_up: CompensationSpec, job: JobRecord) -> bytes:
    if follow_up.input is not None:
        return follow_up.input
    if follow_up.accepts is None:
        return job.input
    # Raw keeps each argument's bytes as they are: nothing is decoded here, only chosen by name.
    try:
        arguments = _by_name.decode(job.input)
    except msgspec.DecodeError:
        return job.input  # junk: the compensation fails by it just as the job did, and holds up nobody
    if follow_up.defaults is not None:
        arguments = _by_name.decode(follow_up.defaults) | arguments
    return msgspec.json.encode({name: arguments[name] for name in follow_up.accepts if name in arguments})


_by_name = msgspec.json.Decoder(dict[str, msgspec.Raw])
