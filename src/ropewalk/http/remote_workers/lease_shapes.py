"""The shapes of a claim: what a remote worker asks for, and the leases that it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import UNSET, Raw, Struct, UnsetType

from ropewalk.http.jobs.shapes import ErrorInfo
from ropewalk.http.remote_workers.shapes import Cancellation, WorkerCall
from ropewalk.http.wire import Duration, JobState, Name, Whole

WAIT_SECONDS_MAX: Final = 20.0
"""A claim waits at most this long: proxies often cut a silent request off after 30 or 60 seconds."""


class Claim(WorkerCall, frozen=True, kw_only=True, forbid_unknown_fields=True):
    slots: Whole
    """How many jobs the worker can start at once."""
    room: Mapping[Name, Whole] = {}
    """At most so many jobs of each type that is named here."""
    wait: Duration = 0
    """Wait this long for a job if there is none. At most PT20S."""


class StepKind(StrEnum):
    STEP = "STEP"
    SLEEP = "SLEEP"
    SIGNAL = "SIGNAL"


class LeaseStep(Struct, frozen=True, kw_only=True):
    """A step that an earlier attempt stored."""

    position: int
    name: str
    kind: StepKind
    finished: bool
    value: Raw | None
    timed_out: bool = False
    """Whether a wait for a signal ended without the signal."""
    remaining: str | UnsetType | None = UNSET
    """How long an unfinished step still waits. None means without end."""


class LeaseDependency(Struct, frozen=True, kw_only=True):
    job_id: str
    kind: str
    ending: str | None
    state: JobState | None
    """None if the job does not exist any more."""
    output: Raw | None
    error: ErrorInfo | None


class Compensated(Struct, frozen=True, kw_only=True):
    """The failed job that this one compensates."""

    job_id: str
    run: int
    type: str
    payload: Raw
    error: ErrorInfo | None
    started: bool


class Lease(Struct, frozen=True, kw_only=True):
    """A job that the worker is to run. Spans count from the claim: from when the request was sent, plus `waited`."""

    job_id: str
    fence: str
    type: str
    queue: str
    tenant: str
    attempt: int
    max_attempts: int | None
    run: int
    payload: Raw
    timeout: str | None
    deadline_in: str | None
    lease: str
    created_at: datetime
    correlation_id: str | None
    tags: Mapping[str, str]
    workflow_id: str | None
    group_id: str
    parent_id: str | None
    idempotency_key: str
    """A key that stays the same for all attempts of one run, for calls to other systems."""
    last_checkpoint: Raw | None
    steps: Sequence[LeaseStep]
    dependencies: Sequence[LeaseDependency]
    traceparent: str | None
    compensates: Compensated | UnsetType = UNSET
    cancel: Cancellation | UnsetType = UNSET


class Claimed(Struct, frozen=True, kw_only=True):
    jobs: Sequence[Lease]
    waited: str
    """How long the server waited before it claimed."""
    drain: bool
