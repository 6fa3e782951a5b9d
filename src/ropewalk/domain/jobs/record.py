"""What is submitted (`NewJob`), what is stored (`JobRecord`), and what is written about its attempts.

A `JobRecord` is changed only by the functions of transition.py and operations.py; a store keeps it and nothing
else decides about it. Instants and spans are µs (domain/time.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.ids import unrecorded
from ropewalk.domain.jobs import flags as flag
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.jobs.states import TERMINAL, Move, State, Status, state_of
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import (
    DAY,
    Instant,
    Span,
    StoredCount,
    StoredInstant,
    StoredPriority,
    StoredSmall,
    StoredSpan,
)
from ropewalk.domain.workflow.dependency import Gate, NewGate

DEFAULT_TENANT = "default"
DEFAULT_QUEUE = "default"
DEFAULT_MAX_ATTEMPTS = 3
DEFAULT_MAX_CRASHES = 3

RECORD_FORMAT: Final = 1
"""of the records this release writes and understands"""

KeyScope: TypeAlias = Literal["open", "any"]


class IdempotencyKey(Struct, frozen=True, kw_only=True):
    key: str
    scope: KeyScope = "open"
    window_us: Span = DAY


class CompensationSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A compensation, kept with the job it would compensate."""

    type: str
    input: bytes | None = None
    """encoded arguments; None takes over those of the failed job that `accepts` names"""
    accepts: tuple[str, ...] | None = None
    """argument names the compensating handler takes; None takes all"""
    defaults: bytes | None = None
    """the failed type's own defaults of those, encoded: arguments that equal them are not stored"""
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    max_attempts: int | None = DEFAULT_MAX_ATTEMPTS
    max_crashes: int = DEFAULT_MAX_CRASHES
    timeout_us: Span | None = None
    backoff: Backoff | None = None
    on_failure: CompensationSpec | None = None
    limit_key: str | None = None


class CompensatedJob(Struct, frozen=True, kw_only=True):
    """What a compensation compensates: enough to act on after the original is pruned."""

    id: str
    run: int
    type: str
    input: bytes
    error: ErrorInfo
    started: bool
    """False when the job was doomed before its first start"""


class NewJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job as submitted: encoded, checked against the limits, options resolved."""

    id: str
    type: str
    input: bytes
    tenant: str = DEFAULT_TENANT
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    inherits_priority: bool = False
    """nobody named one: it takes the highest of what it depends on, or that of the job it continues"""
    strict_order: bool = False
    delay_us: Span = 0
    run_at: Instant | None = None
    """wins over delay_us; both clamp to now by the store's clock"""
    max_attempts: int | None = DEFAULT_MAX_ATTEMPTS
    max_crashes: int = DEFAULT_MAX_CRASHES
    timeout_us: Span | None = None
    """per attempt; None leaves it to the worker's type options (so do backoff and lease_us)"""
    backoff: Backoff | None = None
    lease_us: Span | None = None
    deadline: Instant | None = None
    """whole life, absolute; wins over ttl_us"""
    ttl_us: Span | None = None
    key: IdempotencyKey | None = None
    correlation_id: str | None = None
    tags: dict[str, str] = {}
    workflow_id: str | None = None
    workflow_type: str | None = None
    group_id: str | None = None
    """None: this job is the root of its own group"""
    parent_id: str | None = None
    spawn_key: str | None = None
    gate: NewGate | None = None
    on_failure: CompensationSpec | None = None
    origin: CompensatedJob | None = None
    callback_url: str | None = None
    fairness: str | None = None
    limit_key: str | None = None
    """counted against the limit of this key, wherever else it is named (domain.limits.fleet_limit)"""
    trace: str | None = None
    report_orphan: bool = False
    """tell the app when the group of this root closes with nobody waiting"""

    @property
    def lane(self) -> LaneName:
        return LaneName(self.tenant, self.queue, self.type, self.limit_key or "")


class Progress(Struct, frozen=True):
    percent: float
    message: str | None
    at: Instant


class CancelRequest(Struct, frozen=True):
    reason: str | None
    force: bool
    at: Instant


class JobRecord(Struct, kw_only=True, gc=False, array_like=True):
    """A job as stored. `seq` is the store's own number, increasing in order of submission.

    Encoded it is an array in this order, what every job has first: stores that load many depend on it.
    """

    seq: int
    id: str
    tenant: str
    type: str
    queue: str
    input: bytes
    status: Status
    last_move: Move
    priority: StoredPriority
    prio_key: int
    time_key: Instant
    created_at: StoredInstant
    run_at: StoredInstant
    updated_at: StoredInstant
    flags: flag.StoredFlags = 0
    run: StoredSmall = 1
    """1, +1 for every manual retry or redrive"""
    rev: StoredSmall = 1
    """+1 for every recorded change: history is gap-free by it"""
    attempt: StoredCount = 0
    """budget used; given back by defer, suspend and release"""
    max_attempts: StoredCount | None = DEFAULT_MAX_ATTEMPTS
    crashes: StoredCount = 0
    max_crashes: StoredCount = DEFAULT_MAX_CRASHES
    fence: StoredCount = 0
    """+1 at every claim, never reset; the store's epoch is in its high bits"""
    owner: str | None = None
    """the worker that holds it, or that completed it"""
    ticket: StoredCount = 0
    """the owner's own count of its claims: not started while above the worker's `started_upto`"""
    lease_expires_at: StoredInstant | None = None
    start_rev: StoredSmall = 0
    started_at: StoredInstant | None = None
    finished_at: StoredInstant | None = None
    format: int = RECORD_FORMAT
    """version of this record; a worker leaves newer ones alone"""
    trace: str | None = None
    """of every job, where its senders trace"""
    timeout_us: StoredSpan | None = None
    backoff: Backoff | None = None
    lease_us: StoredSpan | None = None
    deadline: StoredInstant | None = None
    idempotency_key: str | None = None
    correlation_id: str | None = None
    tags: dict[str, str] = {}
    workflow_id: str | None = None
    workflow_type: str | None = None
    group_id: str | None = None
    parent_id: str | None = None
    spawn_key: str | None = None
    chain_id: str | None = None
    chain_index: StoredSmall | None = None
    scope_id: int | None = None
    """the scope it is a member of (domain.workflow.scope)"""
    unmet: StoredSmall = 0
    """what keeps it pending: parents that have not ended, or 1 for an awaited signal"""
    depth: StoredSmall = 0
    """of dependencies above it"""
    gate: Gate | None = None
    awaits: str | None = None
    """the signal it waits for"""
    wake_at: StoredInstant | None = None
    """when a pending job is looked at again, whatever happens: its gate, or its wait for a signal, times out"""
    on_failure: CompensationSpec | None = None
    origin: CompensatedJob | None = None
    callback_url: str | None = None
    fairness: str | None = None
    limit_key: str | None = None
    progress: Progress | None = None
    checkpoint: bytes | None = None
    result: bytes | None = None
    error: ErrorInfo | None = None
    cancel: CancelRequest | None = None
    damaged: tuple[str, ...] = ()
    """names of the stored columns that cannot be read; never stored itself, and the fields so named hold a stand-in"""

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def lane(self) -> LaneName:
        return LaneName(self.tenant, self.queue, self.type, self.limit_key or "")

    @property
    def suspect(self) -> bool:
        """It was running when a worker died; what may run beside it is up to domain/jobs/quarantine.py."""
        return self.crashes > 0

    def state_at(self, now: Instant) -> State:
        return state_of(self.status, unmet=self.unmet, run_at=self.run_at, last_move=self.last_move, now=now)

    def ready_at(self, now: Instant) -> bool:
        return self.status is Status.WAITING and self.unmet == 0 and self.run_at <= now


class AttemptRecord(Struct, frozen=True, kw_only=True):
    """An attempt that ended otherwise than in success (a success is columns of the job itself)."""

    seq: int
    fence: int
    run: int
    attempt: int
    move: Move
    start_rev: int
    rev: int
    started_at: Instant
    ended_at: Instant
    owner: str | None
    error: ErrorInfo | None
    next_run_at: Instant | None


class EventRecord(Struct, frozen=True, kw_only=True):
    """Something an operator or a sweep did to a job outside an attempt."""

    seq: int
    rev: int
    kind: str
    at: Instant
    reason: str | None = None


def new_record(new: NewJob, *, seq: int, now: Instant) -> JobRecord:
    """The record of a job just submitted."""
    run_at = max(now, new.run_at if new.run_at is not None else now + new.delay_us)
    flags = (
        (flag.KEYED if new.key is not None else 0)
        | (flag.ON_FAILURE if new.on_failure is not None else 0)
        | (flag.CALLBACK if new.callback_url is not None else 0)
        | (flag.STRICT_ORDER if new.strict_order else 0)
        | (flag.REPORT_ORPHAN if new.report_orphan else 0)
        | (flag.OWN_LEASE if new.lease_us is not None else 0)
        | (flag.AT_FIXED_TIME if new.run_at is not None else 0)
        | (flag.UNRECORDED if new.trace is not None and unrecorded(new.trace) else 0)
    )
    prio_key, time_key = order_key(new.priority, run_at, flags)
    deadline = new.deadline
    if deadline is None and new.ttl_us is not None:
        deadline = now + new.ttl_us
    return JobRecord(
        seq=seq,
        id=new.id,
        tenant=new.tenant,
        type=new.type,
        queue=new.queue,
        input=new.input,
        status=Status.WAITING,
        last_move=Move.SUBMIT,
        priority=new.priority,
        prio_key=prio_key,
        time_key=time_key,
        created_at=now,
        run_at=run_at,
        updated_at=now,
        flags=flags,
        max_attempts=new.max_attempts,
        max_crashes=new.max_crashes,
        timeout_us=new.timeout_us,
        backoff=new.backoff,
        lease_us=new.lease_us,
        deadline=deadline,
        idempotency_key=None if new.key is None else new.key.key,
        correlation_id=new.correlation_id,
        tags=new.tags,
        workflow_id=new.workflow_id,
        workflow_type=new.workflow_type,
        group_id=new.group_id,
        parent_id=new.parent_id,
        spawn_key=new.spawn_key,
        on_failure=new.on_failure,
        origin=new.origin,
        callback_url=new.callback_url,
        fairness=new.fairness,
        limit_key=new.limit_key,
        trace=new.trace,
    )


def is_plain(new: NewJob) -> bool:
    """Whether a job repeats none, waits for none, and is nobody's child."""
    return new.key is None and new.spawn_key is None and new.gate is None


def are_alike(jobs: Sequence[NewJob]) -> bool:
    """Whether jobs differ in nothing but id, input and spawn key. Submitted together, so do their records, but for
    `seq`."""
    shared = list(map(_but_own, jobs))
    return shared.count(shared[0]) == len(shared)


_but_own = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in {"id", "input", "spawn_key"}))
