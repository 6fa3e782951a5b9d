"""The shapes of what remote workers send and get, but for claims (lease_shapes.py) and outcomes (outcome_shapes.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ropewalk.domain.jobs.lease import LossReason
from ropewalk.http.jobs.shapes import JobSubmission, SubmissionResult
from ropewalk.http.wire import Duration, Json, Name, Whole

Text: TypeAlias = Annotated[str, Meta(max_length=100_000)]
LEASES_MAX: Final = 1000
"""A worker holds at most this many leases, so that one heartbeat names all of them."""


class Loss(StrEnum):
    """Why a lease is lost."""

    TAKEN_BY_ANOTHER_WORKER = "TAKEN_BY_ANOTHER_WORKER"
    ALREADY_COMPLETED = "ALREADY_COMPLETED"
    NOT_FOUND = "NOT_FOUND"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"
    DEADLINE = "DEADLINE"

    @classmethod
    def of(cls, reason: LossReason) -> Loss:
        return cls(reason.value.upper())


class WorkerCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call of a registered worker."""

    worker_id: Name


class Registration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A worker that has started."""

    protocol: Whole
    """The version of the protocol that the worker speaks: 1."""
    name: Name
    host: Name
    pid: Whole
    client: Name
    """The client library and its version, such as "ropewalk-node/1.0"."""
    types: Annotated[list[Name], Meta(min_length=1, max_length=1000)]
    queues: Annotated[list[Name], Meta(min_length=1, max_length=1000)] | UnsetType | None = UNSET
    """The queues that the worker serves. All that its token reaches, if they are left out."""
    concurrency: Annotated[int, Meta(ge=1, le=LEASES_MAX)] | Annotated[float, Meta(ge=1, le=LEASES_MAX, multiple_of=1)]


class Registered(Struct, frozen=True, kw_only=True):
    worker_id: str
    lease: str
    """The length of a lease whose type names no other."""
    heartbeat_every: str
    """A third of the shortest lease among the types of the worker."""
    wait_max: str
    """A claim waits at most this long."""
    batch_max: int
    """One settle call has at most this many outcomes."""
    drain: bool


class LogLevel(StrEnum):
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"
    CRITICAL = "CRITICAL"


class WorkerLogLine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    position: Annotated[int, Meta(ge=1, le=2**31 - 1)] | Annotated[float, Meta(ge=1, le=2**31 - 1, multiple_of=1)]
    """The place of the line among those of this attempt, from 1. A line that is sent twice is kept once."""
    message: Text
    level: LogLevel = LogLevel.INFO
    fields: Mapping[str, Json] = {}
    ago: Duration = 0
    """How long before this call the line was logged."""


class ReportedProgress(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    percent: Annotated[float, Meta(ge=0, le=100)]
    message: Text | None = None


class HeldLease(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A lease that the worker holds, with what its handler reported since the last heartbeat."""

    job_id: Name
    fence: Name
    progress: ReportedProgress | UnsetType | None = UNSET
    log: Annotated[list[WorkerLogLine], Meta(max_length=1000)] = []


class Heartbeat(WorkerCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    leases: Annotated[list[HeldLease], Meta(max_length=LEASES_MAX)]
    """All leases that the worker holds. One that is missing here is given back."""


class LostLease(Struct, frozen=True, kw_only=True):
    job_id: str
    fence: str
    reason: Loss


class CancelledLease(Struct, frozen=True, kw_only=True):
    """A job that is to be cancelled while it runs."""

    job_id: str
    fence: str
    reason: str | None
    force: bool
    """Whether the handler is to be stopped instead of asked to end."""


class Cancellation(Struct, frozen=True, kw_only=True):
    reason: str | None
    force: bool


class Beat(Struct, frozen=True, kw_only=True):
    """The answer to a heartbeat. Every lease that neither `lost` nor `busy` names is renewed."""

    lost: Sequence[LostLease]
    cancel: Sequence[CancelledLease]
    busy: Sequence[str]
    """The ids of jobs that another transaction has locked just now: their leases are neither renewed nor lost."""
    drain: bool


class HandlerCall(WorkerCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call that a handler makes while it runs."""

    job_id: Name
    fence: Name


class Checkpoint(HandlerCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    state: Json


class StepResult(HandlerCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    position: Whole
    name: Name
    value: Json = None


class SignalRequest(HandlerCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    position: Whole
    name: Name
    """The name of the step that waits."""
    signal: Name


class SpawnedJob(JobSubmission, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job to enqueue under the running one."""

    spawn_key: Name
    """A job that was spawned before with this key, by any attempt, is found again and not enqueued twice."""


class Spawn(HandlerCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    jobs: Annotated[list[SpawnedJob], Meta(min_length=1, max_length=1000)]


class OnceRequest(HandlerCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key: Name
    ttl: Duration


class HandlerAnswer(Struct, frozen=True, kw_only=True):
    """The answer to a call of a handler that may go on."""

    cancel: Cancellation | UnsetType = UNSET
    """Present if the job is to be cancelled."""


class Arrived(Struct, frozen=True, kw_only=True):
    value: Raw | None


class SignalAnswer(HandlerAnswer, frozen=True, kw_only=True):
    signal: Arrived | None
    """The signal that this step took. None if none has come."""


class SpawnAnswer(HandlerAnswer, frozen=True, kw_only=True):
    jobs: Sequence[SubmissionResult]


class OnceAnswer(HandlerAnswer, frozen=True, kw_only=True):
    first: bool
    """Whether nobody else used this key within its time."""
