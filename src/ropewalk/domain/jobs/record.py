"""Jobs as clients submit them (`NewJob`) and as stores keep them (`JobRecord`), and the records of their attempts.

Only functions of the domain change a `JobRecord`: those of transition.py, operations.py, lease.py and
domain/workflow/gate.py. A store keeps it. Instants and spans are in µs (domain/time.py).
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
"""This release writes records in this format and reads records up to it."""

KeyScope: TypeAlias = Literal["open", "any"]


class IdempotencyKey(Struct, frozen=True, kw_only=True):
    """The idempotency key of a submission (domain/jobs/idempotency.py)."""

    key: str
    scope: KeyScope = "open"
    """With "open" the key is taken while its job is open, with "any" also within the window after its submission."""
    window_us: Span = DAY


class CompensationSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The description of a compensation, which is kept with the job that it would compensate."""

    type: str
    input: bytes | None = None
    """The encoded arguments; None passes on those arguments of the failed job that `accepts` names."""
    accepts: tuple[str, ...] | None = None
    """The names of the arguments that the compensating handler takes; None means all."""
    defaults: bytes | None = None
    """The encoded defaults of the failed type for these arguments, because an argument that equals its default is not
    stored."""
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    max_attempts: int | None = DEFAULT_MAX_ATTEMPTS
    max_crashes: int = DEFAULT_MAX_CRASHES
    timeout_us: Span | None = None
    backoff: Backoff | None = None
    on_failure: CompensationSpec | None = None
    limit_key: str | None = None


class CompensatedJob(Struct, frozen=True, kw_only=True):
    """The failed job, as its compensation sees it, even after the failed job itself has been deleted."""

    id: str
    run: int
    type: str
    input: bytes
    error: ErrorInfo
    started: bool
    """Whether the failed job ever started; it did not if its gate was doomed, for example."""


class NewJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job as it is submitted: its arguments are encoded, its options are resolved, and its bounds are checked."""

    id: str
    type: str
    input: bytes
    tenant: str = DEFAULT_TENANT
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    inherits_priority: bool = False
    """Nobody named a priority, so the job takes the highest of its parents, or that of the job that it continues."""
    strict_order: bool = False
    """Priority alone decides when the job is claimed, without ageing (domain/jobs/order.py)."""
    delay_us: Span = 0
    """The job is ready this long after its submission."""
    run_at: Instant | None = None
    """The job is ready at this instant, whatever `delay_us` says. An instant in the past means now."""
    max_attempts: int | None = DEFAULT_MAX_ATTEMPTS
    max_crashes: int = DEFAULT_MAX_CRASHES
    timeout_us: Span | None = None
    """One attempt may take this long; None leaves the choice to the options of the type in the worker."""
    backoff: Backoff | None = None
    """None leaves the choice to the options of the type in the worker."""
    lease_us: Span | None = None
    """None leaves the choice to the options of the type in the worker."""
    deadline: Instant | None = None
    """The job expires at this instant unless it has ended, whatever `ttl_us` says."""
    ttl_us: Span | None = None
    """The job expires this long after its submission unless it has ended."""
    key: IdempotencyKey | None = None
    correlation_id: str | None = None
    tags: dict[str, str] = {}
    workflow_id: str | None = None
    workflow_type: str | None = None
    group_id: str | None = None
    """The id of the root of the job's group; None if the job itself is the root."""
    parent_id: str | None = None
    spawn_key: str | None = None
    gate: NewGate | None = None
    on_failure: CompensationSpec | None = None
    origin: CompensatedJob | None = None
    callback_url: str | None = None
    fairness: str | None = None
    limit_key: str | None = None
    """The job counts against the limit of this key, together with all jobs that name it (domain.limits.fleet_limit)."""
    trace: str | None = None
    """The trace context of the sender (domain/ids.py)."""
    report_orphan: bool = False
    """Whether the app is told if the group of this root job closes while nobody waits for it."""

    @property
    def lane(self) -> LaneName:
        return LaneName(self.tenant, self.queue, self.type, self.limit_key or "")


class Progress(Struct, frozen=True):
    """How far a handler has come, as it reported itself."""

    percent: float
    message: str | None
    at: Instant
    """The store received the report at this instant."""


class CancelRequest(Struct, frozen=True):
    """A request to cancel a job or a group."""

    reason: str | None
    force: bool
    """Whether a running handler is interrupted instead of asked to stop."""
    at: Instant


class JobRecord(Struct, kw_only=True, gc=False, array_like=True):
    """A job as a store keeps it.

    Encoded, a record is an array of these fields in this order. The fields that every job has come first, because
    stores that load many jobs depend on it.
    """

    seq: int
    """The number that the store gave the job; numbers grow in the order of submission."""
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
    """The number of the current run: 1, and one more for every manual retry or redrive."""
    rev: StoredSmall = 1
    """The number of recorded changes, by which the history has no gaps."""
    attempt: StoredCount = 0
    """The number of attempts that count; those that were deferred, suspended or released do not."""
    max_attempts: StoredCount | None = DEFAULT_MAX_ATTEMPTS
    crashes: StoredCount = 0
    max_crashes: StoredCount = DEFAULT_MAX_CRASHES
    fence: StoredCount = 0
    """The fence grows by one with every claim and is never reset. The epoch of the store is in its high bits."""
    owner: str | None = None
    """The worker that has leased the job, or that completed it."""
    ticket: StoredCount = 0
    """The number that the owner gave the job when it claimed it (domain/jobs/lease.py)."""
    lease_expires_at: StoredInstant | None = None
    start_rev: StoredSmall = 0
    """The rev of the newest claim; 0 if the job was never claimed."""
    started_at: StoredInstant | None = None
    finished_at: StoredInstant | None = None
    format: int = RECORD_FORMAT
    """The format of this record. A worker leaves records in a newer format alone."""
    trace: str | None = None
    """The trace context of the sender (domain/ids.py), if it has one."""
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
    """The number of the scope of which the job is a member (domain.workflow.scope)."""
    unmet: StoredSmall = 0
    """The number of parents for which a pending job still waits, or 1 if it waits for a signal."""
    depth: StoredSmall = 0
    """The length of the longest path of dependencies above the job."""
    gate: Gate | None = None
    awaits: str | None = None
    """The name of the signal for which the job waits."""
    wake_at: StoredInstant | None = None
    """The instant at which the timeout of the gate, or of the wait for a signal, is over."""
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
    """The names of the stored columns that cannot be read. This field is never stored, and the fields of these names
    contain a stand-in."""

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL

    @property
    def lane(self) -> LaneName:
        return LaneName(self.tenant, self.queue, self.type, self.limit_key or "")

    @property
    def suspect(self) -> bool:
        """Whether the job was running when a worker died (domain/jobs/quarantine.py)."""
        return self.crashes > 0

    def state_at(self, now: Instant) -> State:
        return state_of(self.status, unmet=self.unmet, run_at=self.run_at, last_move=self.last_move, now=now)

    def ready_at(self, now: Instant) -> bool:
        return self.status is Status.WAITING and self.unmet == 0 and self.run_at <= now


class AttemptRecord(Struct, frozen=True, kw_only=True):
    """An attempt that did not complete its job. Columns of the job itself record a completion."""

    seq: int
    fence: int
    run: int
    attempt: int
    move: Move
    """The attempt ended with this move."""
    start_rev: int
    """The rev of the job when the attempt started."""
    rev: int
    """The rev of the job when the attempt ended."""
    started_at: Instant
    ended_at: Instant
    owner: str | None
    error: ErrorInfo | None
    next_run_at: Instant | None
    """The job was to run again at this instant; None if it had ended."""


class EventRecord(Struct, frozen=True, kw_only=True):
    """A change of a job outside of any attempt, by an operator, a sweep or a parent."""

    seq: int
    rev: int
    kind: str
    at: Instant
    reason: str | None = None


def new_record(new: NewJob, *, seq: int, now: Instant) -> JobRecord:
    """Returns the record of a job that was submitted just now."""
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
    """Whether a job has no idempotency key, no spawn key and no gate, so that it can be written without a look at other
    jobs."""
    return new.key is None and new.spawn_key is None and new.gate is None


def are_alike(jobs: Sequence[NewJob]) -> bool:
    """Whether jobs differ in nothing but id, input and spawn key. If they are submitted together, their records differ
    only in these and in `seq`."""
    shared = list(map(_shared_fields, jobs))
    return shared.count(shared[0]) == len(shared)


_shared_fields = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in {"id", "input", "spawn_key"}))
