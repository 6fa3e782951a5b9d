"""What follows the end of an attempt: the plan of a completion, the point where a suspended handler goes on, and the
compensation of a job that failed.

The compensation is built once for each run of a job that became failed or dead_letter, whichever path led there.
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
"""A store remembers the id of a signal for this long: a signal with the same id is not stored a second time."""


def as_once_key(job_id: str, signal_id: str | None) -> str | None:
    """Returns the key that lets the store accept a signal only once for a job. A signal without an id has no key."""
    return None if signal_id is None else f"signal {signal_id} to {job_id}"


class CompletionPlan(Struct, frozen=True, kw_only=True):
    """The jobs and the contribution that come with a completion. They are written in the transaction that completes
    the job, or not at all."""

    children: tuple[NewJob, ...] = ()
    """These jobs become members of the scope of the completed job. Their gates refer to one another by id."""
    continuation: NewJob | None = None
    """This job is the next one in the chain of the completed job."""
    contribution: Contribution | None = None
    """The completed job adds this to the value of its group."""


def leaves_only_a_result(plan: CompletionPlan | None) -> bool:
    """Whether a completion writes nothing but the result, if the job is the only one of its group.

    A contribution whose reducer takes the result itself adds nothing then: the group's value is the result.
    """
    return plan is None or (
        _is_the_end(plan) and (plan.contribution is None or plan.contribution.reducer in TAKE_THE_RESULT)
    )


def leaves_only_a_contribution(plan: CompletionPlan | None) -> bool:
    """Whether a completion writes nothing but the result and one contribution, if the job is a member of a scope.

    A contribution folded by a function of the user's does not count, because the store may refuse it.
    """
    return plan is None or (_is_the_end(plan) and (plan.contribution is None or plan.contribution.reducer != "custom"))


def _is_the_end(plan: CompletionPlan) -> bool:
    return not plan.children and plan.continuation is None


class StepRecord(Struct, frozen=True, kw_only=True):
    """A durable step of a job, identified by its position in the handler. A record that only says when a wait ends is
    not finished."""

    position: int
    name: str
    kind: StepKind
    value: bytes | None = None
    until: Instant | None = None
    """At this instant a sleep ends, or the handler stops waiting for a signal."""
    finished: bool = True


class Suspension(Struct, frozen=True, kw_only=True):
    """The reason why a handler gave up its slot: it sleeps or waits for a signal. It runs again from the top later."""

    position: int
    name: str
    """This is the name of the step that waits."""
    signal: str | None = None
    """The handler waits for a signal of this name; None means that it sleeps."""
    span_us: Span | None = None
    """The wait lasts for this long from now; None means that the wait for a signal has no end."""
    until: Instant | None = None
    """An earlier suspension at the same step set this end of the wait. If it is further away than `span_us`, the clock
    has been set back in the meantime, and `span_us` decides."""

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
    """Returns the job to insert together with the transition that ends a failed job, if that job names one.

    Its id is computed from (tenant, job, run), so the same failure can never be compensated twice.
    """
    spec = job.on_failure
    if spec is None:
        return None
    error = job.error or WORKER_LOST
    return NewJob(
        id=str(uuid5(_NAMESPACE, f"{job.tenant}/{job.id}/{job.run}")),
        type=spec.type,
        input=_arguments(spec, job),
        tenant=job.tenant,
        queue=spec.queue,
        priority=spec.priority,
        max_attempts=spec.max_attempts,
        max_crashes=spec.max_crashes,
        timeout_us=spec.timeout_us,
        backoff=spec.backoff,
        correlation_id=job.correlation_id,
        workflow_id=job.workflow_id,
        workflow_type=job.workflow_type,
        group_id=job.group_id or job.id,
        parent_id=job.id,
        on_failure=spec.on_failure,
        limit_key=spec.limit_key,
        origin=CompensatedJob(
            id=job.id, run=job.run, type=job.type, input=job.input, error=error, started=job.start_rev > 0
        ),
        trace=job.trace,
    )


def _arguments(spec: CompensationSpec, job: JobRecord) -> bytes:
    if spec.input is not None:
        return spec.input
    if spec.accepts is None:
        return job.input
    # Raw leaves the bytes of each argument as they are: arguments are selected by name here, and none is decoded.
    try:
        arguments = _by_name.decode(job.input)
    except msgspec.DecodeError:
        return job.input  # This is junk: the compensation fails because of it just as the job did, and blocks nothing.
    if spec.defaults is not None:
        arguments = _by_name.decode(spec.defaults) | arguments
    return msgspec.json.encode({name: arguments[name] for name in spec.accepts if name in arguments})


_by_name = msgspec.json.Decoder(dict[str, msgspec.Raw])
