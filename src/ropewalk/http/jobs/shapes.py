"""The shapes of jobs in requests and answers. Names and enumerations are part of the API: they only grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ropewalk.http.errors import APIError
from ropewalk.http.wire import (
    Attempts,
    Duration,
    DurationAboveZero,
    ErrorCategory,
    Ids,
    JobState,
    Json,
    LimitKey,
    Name,
    Priority,
    ShownPriority,
    Tags,
    Timestamp,
)


class BackoffStrategy(StrEnum):
    CONSTANT = "CONSTANT"
    LINEAR = "LINEAR"
    EXPONENTIAL = "EXPONENTIAL"
    CUSTOM = "CUSTOM"
    """The function of the job type."""


class BackoffSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a job waits between attempts. What is left out comes from its type."""

    strategy: BackoffStrategy | UnsetType = UNSET
    initial_delay: Duration | UnsetType = UNSET
    max_delay: Duration | UnsetType = UNSET
    multiplier: Annotated[float, Meta(ge=1, le=1000)] | UnsetType = UNSET
    jitter: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET


class DependencyType(StrEnum):
    AFTER = "AFTER"
    """All of them must have succeeded."""
    AFTER_ANY = "AFTER_ANY"
    """All of them must have ended, in whatever way."""
    CHAIN = "CHAIN"
    """Each with its continuations must have succeeded; a failure cancels the job."""


class IdempotencyScope(StrEnum):
    OPEN = "OPEN"
    """The key is taken as long as its job has not ended."""
    ANY = "ANY"
    """The key is taken for the whole window."""


class OnUnsatisfied(StrEnum):
    FAIL = "FAIL"
    CANCEL = "CANCEL"
    SKIP = "SKIP"
    RUN = "RUN"


class Condition(StrEnum):
    ALL_SUCCESS = "ALL_SUCCESS"
    ALL_DONE = "ALL_DONE"
    ANY_SUCCESS = "ANY_SUCCESS"
    ANY_DONE = "ANY_DONE"


class JobSubmission(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job to enqueue."""

    type: Name
    payload: Mapping[str, Json]
    """The arguments by name."""
    priority: Priority | UnsetType = UNSET
    delay: Duration | UnsetType = UNSET
    scheduled_at: Timestamp | UnsetType = UNSET
    """Wins over `delay`."""
    timeout: DurationAboveZero | UnsetType = UNSET
    """For each attempt."""
    max_attempts: Attempts | UnsetType = UNSET
    backoff: BackoffSpec | UnsetType = UNSET
    idempotency_key: Name | UnsetType = UNSET
    idempotency_scope: IdempotencyScope | UnsetType = UNSET
    idempotency_window: Duration | UnsetType = UNSET
    correlation_id: Name | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    depends_on: Ids | UnsetType = UNSET
    dependency_type: DependencyType | UnsetType = UNSET
    when: Condition | UnsetType = UNSET
    """The condition over `depends_on`, where `dependency_type` is left out."""
    on_unsatisfied: OnUnsatisfied | UnsetType = UNSET
    gate_timeout: Duration | UnsetType = UNSET
    allow_missing: bool | UnsetType = UNSET
    callback_url: Annotated[str, Meta(min_length=1, max_length=2048)] | UnsetType = UNSET
    id: Name | UnsetType = UNSET
    queue: Name | UnsetType = UNSET
    deadline: Timestamp | UnsetType = UNSET
    ttl: Duration | UnsetType = UNSET
    workflow_id: Name | UnsetType = UNSET
    workflow_type: Name | UnsetType = UNSET
    on_failure: Name | UnsetType = UNSET
    """The type of the job that compensates this one."""
    limit: LimitKey | UnsetType = UNSET
    fairness: Name | UnsetType = UNSET


class SubmissionStatus(StrEnum):
    ACCEPTED = "ACCEPTED"
    DUPLICATE = "DUPLICATE"
    REJECTED = "REJECTED"


class SubmissionResult(Struct, frozen=True, kw_only=True):
    """What became of a submitted job."""

    status: SubmissionStatus
    job_id: str | None
    """None if the job was rejected before it had an id."""
    state: JobState | None
    created_at: datetime | None
    scheduled_for: datetime | None
    group_id: str | None
    existing_job_id: str | UnsetType = UNSET
    """The job that was there already."""
    error: APIError | UnsetType = UNSET


class BatchSubmission(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs to enqueue together."""

    jobs: Annotated[list[JobSubmission], Meta(min_length=1, max_length=1000)]
    atomic: bool = False
    """All or none, instead of each on its own."""


class BatchResult(Struct, frozen=True, kw_only=True):
    """What became of the jobs of a batch, in their order."""

    total: int
    accepted: int
    """How many are stored: new ones, and those that were there already."""
    rejected: int
    results: Sequence[SubmissionResult]


class Progress(Struct, frozen=True, kw_only=True):
    percent: int
    message: str | None
    updated_at: datetime


class ErrorInfo(Struct, frozen=True, kw_only=True):
    """Why an attempt or a job failed."""

    category: ErrorCategory
    code: str | None
    """The stable code of the error, else the name of its exception."""
    message: str | None
    stack_trace: str | None


class ResultStatus(StrEnum):
    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"


class JobResult(Struct, frozen=True, kw_only=True):
    """How a finished job ended."""

    status: ResultStatus
    output: Raw | None
    error: ErrorInfo | None
    duration_ms: int | None
    attempt: int


class StateTransition(Struct, frozen=True, kw_only=True):
    """One recorded change of a job."""

    from_state: JobState | None
    to_state: JobState
    timestamp: datetime
    reason: str | None
    rev: int
    kind: str
    attempt: int | None
    worker_id: str | None


class JobStatus(Struct, frozen=True, kw_only=True):
    """A job as it is now."""

    job_id: str
    type: str
    state: JobState
    attempt: int
    created_at: datetime
    updated_at: datetime
    scheduled_for: datetime
    started_at: datetime | None
    completed_at: datetime | None
    progress: Progress | None
    priority: ShownPriority
    tags: Mapping[str, str]
    correlation_id: str | None
    queue: str
    tenant: str
    max_attempts: int | None
    crashes: int
    run: int
    rev: int
    deadline: datetime | None
    group_id: str
    parent_id: str | None
    chain_id: str | None
    chain_index: int | None
    awaits: str | None
    skipped: bool
    worker_id: str | None
    idempotency_key: str | None
    workflow_id: str | None
    workflow_type: str | None
    cancel_requested: bool
    error: ErrorInfo | None
    payload: Raw | UnsetType = UNSET
    """Absent if the identity must not see payloads."""
    result: JobResult | UnsetType = UNSET
    """Present if it was asked for and the job has ended."""
    history: Sequence[StateTransition] | UnsetType = UNSET
    """Present if it was asked for."""


class DryRun(Struct, frozen=True, forbid_unknown_fields=True):
    dry_run: bool = False
    """Check everything and write nothing."""


class JobQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    include_result: bool = False
    include_history: bool = False
