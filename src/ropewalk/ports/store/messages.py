"""What crosses the storage port: requests and answers, one Struct each. The verbs that use them are in core.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from ropewalk.domain.jobs.idempotency import ignored_options
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.operations import CancelStatus, RetryStatus
from ropewalk.domain.jobs.order import TenantQueue
from ropewalk.domain.jobs.record import AttemptRecord, CancelRequest, EventRecord, JobRecord, NewJob, Progress
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.limits.fleet_limit import FlowLimit, LaneName, Measure
from ropewalk.domain.logs import LogLine
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.domain.workflow.dependency import Edge
from ropewalk.domain.workflow.group_value import NOTHING, GroupValue
from ropewalk.errors import RopewalkError


class Durability(StrEnum):
    """What an acknowledged write survives."""

    D0 = "gone with the process"
    D1 = "survives the kill of every process"
    D2 = "survives power loss"
    D3 = "survives the loss of a node"


# ── submitting ──────────────────────────────────────────────────────────────────────────────────────────────


class Holder(Struct, frozen=True):
    """The lease under which a handler writes."""

    seq: int
    fence: int
    owner: str


class SkipQueue(Struct, frozen=True):
    """Insert already leased by this worker instance (attempt 1), where nothing stands in the way."""

    owner: str
    ticket: int
    lease_us: Span


class Submission(Struct, frozen=True, kw_only=True):
    """Jobs that are accepted together or not at all.

    `under` makes it a spawn: refused as stale unless the lease is current; the jobs join the holder's group and are
    open in its scope; a job whose (parent_id, spawn_key) exists already is answered as a duplicate, or SpawnMismatch
    where type or input differ.
    Gates name jobs that exist or are in the same submission, in any order. Refused, naming the field: unknown parents
    (NotFound, unless allow_missing), circles (InvalidInput), too deep (LimitExceeded), and from inside a group anything
    unfinished but siblings and jobs of groups opened earlier (InvalidInput): so nothing can ever wait for itself.
    `skip_queue` (one job, not delayed, queue not paused, no limit full) returns the job leased.
    """

    jobs: Sequence[NewJob]
    under: Holder | None = None
    skip_queue: SkipQueue | None = None


class Accepted(Struct, frozen=True, kw_only=True, gc=False):
    id: str
    """of the new job, or of the existing one it duplicates"""
    duplicate: bool
    state: State
    run_at: Instant
    group_id: str
    leased: JobRecord | None = None
    """set when skip_queue took effect"""
    ignored: tuple[str, ...] = ()
    """of a duplicate: options in which it differs from the job that is there (domain.jobs.idempotency)"""

    @classmethod
    def of(cls, job: JobRecord, now: Instant, *, duplicate: bool, new: NewJob | None = None) -> Accepted:
        return cls(
            ignored=ignored_options(job, new) if duplicate and new is not None else (),
            id=job.id,
            duplicate=duplicate,
            state=job.state_at(now),
            run_at=job.run_at,
            group_id=job.group_id or job.id,
            leased=job if job.status is Status.RUNNING and not duplicate else None,
        )


class MustWait(RopewalkError):
    """Nothing was written: this would have to wait for a transaction of somebody else's."""


SubmitAnswer: TypeAlias = "list[Accepted] | RopewalkError"
"""in the order of the submission's jobs; or Conflict, SpawnMismatch, QuotaExceeded, LeaseLost, MustWait"""


# ── working ─────────────────────────────────────────────────────────────────────────────────────────────────


class WorkerCard(Struct, frozen=True, kw_only=True):
    """A started worker, as others see it. None serves all tenants or queues. From started_at on the store knows."""

    id: str
    host: str
    pid: int
    types: tuple[str, ...]
    queues: tuple[str, ...] | None
    tenants: tuple[str, ...] | None
    concurrency: int
    lease_us: Span = 30_000_000
    started_at: Instant = 0
    beat_at: Instant = 0
    draining: bool = False  # it was told to stop
    held: int = 0  # leases


class Moved(Struct, frozen=True, kw_only=True):
    """A job the store itself moved (a lost lease, a passed deadline), for events and hints."""

    job: JobRecord
    move: Move


class ClosedGroup(Struct, frozen=True, order=True):
    """Nothing in this group is open any more. Ids are a tenant's own, so its name belongs to it."""

    tenant: str
    id: str


class Claimed(Struct, frozen=True, kw_only=True):
    now: Instant
    jobs: list[JobRecord]
    moved: list[Moved]
    """expired leases taken back and passed deadlines met on the way, and what that doomed"""
    next_due: Instant | None
    """when there may be more: the next job of these types comes due, or a limit that held some back leaves room"""
    closed: list[ClosedGroup] = []
    """groups that closed with it"""
    limited: list[int] = []
    """those of them (by seq) that count against a limit: when they end, others may have waited for that"""
    held_up: TenantQueue | None = None
    """where a job is next that must start at once, and no slot was left for it: the next claim is to begin there"""


class Consequences(Struct, frozen=True, kw_only=True):
    """What else happened because of it, for events and hints: dependants doomed or ready, groups closed."""

    moved: list[Moved] = []
    """jobs that ended behind gates that can no longer open, or in a cancelled group"""
    ready: list[str] = []
    """queues in which jobs became ready"""
    closed: list[ClosedGroup] = []
    more: bool = False
    """some of it is left for `cascade`"""


class Renewal(Struct, frozen=True, kw_only=True):
    seq: int
    fence: int
    lease_us: Span
    progress: Progress | None = None
    """newest progress since the last renewal; its `at` is set by the store"""
    lines: tuple[LogLine, ...] = ()
    """logged since the last renewal"""


class Lost(Struct, frozen=True, kw_only=True):
    seq: int
    fence: int
    reason: LossReason


class CancelNotice(Struct, frozen=True, kw_only=True):
    seq: int
    fence: int
    reason: str | None
    force: bool

    @classmethod
    def of(cls, job: JobRecord) -> CancelNotice | None:
        """What its holder must be told, if anything."""
        if job.cancel is None:
            return None
        return cls(seq=job.seq, fence=job.fence, reason=job.cancel.reason, force=job.cancel.force)


class Renewed(Struct, frozen=True, kw_only=True):
    """Leases not named in `lost` or `busy` are renewed. `cancels` repeats until the attempt ends, `drain` for good."""

    lost: list[Lost]
    cancels: list[CancelNotice]
    busy: list[int] = []
    """seqs locked by somebody else's transaction just now: neither renewed nor lost"""
    drain: bool = False


class Settled(Struct, frozen=True, kw_only=True, gc=False):
    """Answer to one settlement. Stale: nothing changed, `lost` says why."""

    seq: int
    fence: int
    job: JobRecord | None = None
    """as it is after the move; None for a plain completion (it is what the worker already knows) and when stale"""
    move: Move | None = None
    """what really happened (a noted cancellation turns a retry into a cancel); None when stale"""
    lost: LossReason | None = None
    refused: RopewalkError | None = None
    """its sequel cannot be written (an unknown dependency, a conflicting id, an outdated fold): nothing changed"""


class Settlements(Struct, frozen=True, kw_only=True):
    settled: list[Settled]
    """in the order they were asked for"""
    ripple: Consequences


class Note(Struct, frozen=True, kw_only=True):
    """Something a running attempt records at once."""

    holder: Holder
    checkpoint: bytes | None = None
    progress: Progress | None = None


class NoteAnswer(Struct, frozen=True, kw_only=True):
    lost: LossReason | None = None
    cancel: CancelNotice | None = None


class StepAnswer(Struct, frozen=True, kw_only=True):
    """`taken` is the step as recorded, where a signal was there to take."""

    lost: LossReason | None = None
    taken: StepRecord | None = None


# ── operating ───────────────────────────────────────────────────────────────────────────────────────────────


class CancelAnswer(Struct, frozen=True, kw_only=True):
    id: str
    status: CancelStatus
    previous: State | None


class Cancellations(Struct, frozen=True, kw_only=True):
    answers: list[CancelAnswer]
    """in the order they were asked for"""
    ripple: Consequences


class EndAnswer(Struct, frozen=True, kw_only=True):
    id: str
    job: JobRecord | None = None
    """as resolved; None with `state` None: not found; None with a state: it had ended already"""
    state: State | None = None
    ripple: Consequences | None = None


class SignalAnswer(StrEnum):
    DELIVERED = "delivered"
    """the job waited for it and is ready now"""
    KEPT = "kept"
    """in its mailbox until it asks"""
    DUPLICATE = "duplicate"
    """it was sent before with the same id, and is not stored again"""
    ALREADY_COMPLETE = "already_complete"
    NOT_FOUND = "not_found"


class RetryAnswer(Struct, frozen=True, kw_only=True):
    id: str
    status: RetryStatus
    state: State | None = None
    run_at: Instant | None = None
    reason: str | None = None
    """why not: state_completed, key_in_use, damaged_row, …"""


class UpdateAnswer(Struct, frozen=True, kw_only=True):
    id: str
    job: JobRecord | None = None
    """as updated; None with `state` None: not found; None with a state: not waiting, nothing changed"""
    state: State | None = None


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────


class Snapshot(Struct, frozen=True, kw_only=True):
    now: Instant
    jobs: dict[str, JobRecord]
    """by id; missing ones are absent"""


class Page(Struct, frozen=True, kw_only=True):
    now: Instant
    jobs: list[JobRecord]
    next_cursor: str | None


class StoredHistory(Struct, frozen=True, kw_only=True):
    """A job with everything recorded about it (domain.jobs.history.assemble makes the history)."""

    now: Instant
    job: JobRecord
    attempts: list[AttemptRecord]
    events: list[EventRecord]


class GroupRecord(Struct, frozen=True, kw_only=True):
    """A group with more than its root. Counts are of all its jobs, at any depth, the root included."""

    id: str
    generation: int
    open: int
    """jobs not terminal"""
    completed: int
    failed: int
    cancelled: int
    closed_at: Instant | None
    cancelled_by: CancelRequest | None
    value: GroupValue = NOTHING


class GroupContribution(Struct, frozen=True, kw_only=True):
    """A contribution of a group whose value is put together by its reader (list, merge)."""

    type: str
    value: bytes | None


class Dependency(Struct, frozen=True, kw_only=True):
    """A parent of a job, in the order of its depends_on."""

    edge: Edge
    job: JobRecord | None
    """None where it is missing or was deleted meanwhile; of a chain, its last member"""
    group: GroupRecord | None = None
    """of the tree of a group's root, where the group has a record: that is, more than its root"""
    contributions: tuple[GroupContribution, ...] = ()
    """to the value of that group, where its reader puts it together (list, merge)"""


class UnawaitedGroup(Struct, frozen=True, kw_only=True):
    """A group closed with nobody waiting. `id` is the same however often it is told."""

    id: str
    tenant: str
    group_id: str
    closed_at: Instant


class LimitUse(Struct, frozen=True, kw_only=True):
    """A limit, and what runs under it now."""

    limit: FlowLimit
    in_use: int
    keys: dict[str, int] = {}
    """of a family: in use by key, each of which has the whole limit to itself"""

    @classmethod
    def of(cls, limit: FlowLimit, in_use: Mapping[Measure, int]) -> LimitUse:
        mine = {measure.name: number for measure, number in in_use.items() if measure.limit == limit.id}
        return cls(limit=limit, in_use=sum(mine.values()), keys=mine if limit.for_each else {})


class QueueInfo(Struct, frozen=True, kw_only=True):
    name: str
    paused: bool
    counts: dict[State, int]
    """live states only: pending, delayed, retrying, scheduled, running"""
    oldest_ready_at: Instant | None


class Backlog(Struct, frozen=True, kw_only=True):
    """Jobs that could start now, of one tenant, queue and type."""

    lane: LaneName
    """without a limit key"""
    ready: int
    """of each limit key counted to 100 000"""
    oldest_ready_at: Instant
    """the earliest run_at among those counted"""
