"""Capability: jobs that hang together. Dependencies, groups, chains, steps, signals and compensation.

The rules for every verb are in core.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.operations import EndRequest
from ropewalk.domain.jobs.record import CancelRequest, JobRecord
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.domain.workflow.dependency import Edge
from ropewalk.domain.workflow.group_value import NOTHING, GroupValue
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.leases import Holder


class EndAnswer(Struct, frozen=True, kw_only=True):
    id: str
    job: JobRecord | None = None
    """as resolved; None with `state` None: not found; None with a state: it had ended already"""
    state: State | None = None
    consequences: Consequences | None = None


class SignalAnswer(StrEnum):
    DELIVERED = "delivered"
    """the job waited for it and is ready now"""
    KEPT = "kept"
    """in its mailbox until it asks"""
    DUPLICATE = "duplicate"
    """it was sent before with the same id, and is not stored again"""
    ALREADY_COMPLETE = "already_complete"
    NOT_FOUND = "not_found"


class StepAnswer(Struct, frozen=True, kw_only=True):
    """`taken` is the step as recorded, where a signal was there to take."""

    lost: LossReason | None = None
    taken: StepRecord | None = None


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


class OrphanRecord(Struct, frozen=True, kw_only=True):
    """A group that closed while nobody waited for it. Its `id` is the same however often it is reported."""

    id: str
    tenant: str
    group_id: str
    closed_at: Instant


class WorkflowStore(Protocol):
    """What happens between jobs: signals, steps, resolutions from outside, groups, chains and dependencies.

    A store with this capability also accepts gates, compensation and spawns in `submit`, completion plans and
    suspensions in `settle`, and cascades in `retry`. A store without it is never given any of these.
    """

    async def end(self, tenant: str, job_id: str, request: EndRequest) -> EndAnswer:
        """domain.jobs.operations.end, with everything an ending brings."""
        ...

    async def signal(
        self, tenant: str, job_id: str, name: str, value: bytes | None, *, signal_id: str | None = None
    ) -> SignalAnswer:
        """Put a signal into a job's mailbox, under the job's lock: a suspension looks there under the same lock.

        Sent again with the same `signal_id` within domain.workflow.completion.SIGNAL_KNOWN_FOR, it is a DUPLICATE and
        changes nothing, also when it was taken or the job has ended meanwhile.
        """
        ...

    async def steps(self, seq: int) -> list[StepRecord]:
        """In order of position."""
        ...

    async def record_step(self, holder: Holder, step: StepRecord) -> StepAnswer:
        """Keep a finished step, fenced; it replaces an unfinished one of the same position."""
        ...

    async def take_signal(self, holder: Holder, step: StepRecord, signal: str) -> StepAnswer:
        """Take the oldest signal of this name out of the mailbox and keep it as `step`, together and fenced."""
        ...

    async def cancel_group(self, tenant: str, group_id: str, *, reason: str | None, force: bool) -> bool:
        """Mark every scope of the group: members written from now on are born cancelled. False: not found.

        The members that are there are cancelled by the caller, in batches.
        """
        ...

    async def await_group(self, tenant: str, group_id: str, span_us: Span) -> None:
        """Note that somebody waits for this group for that long: if it closes meanwhile, it is no orphan."""
        ...

    async def take_orphans(self, limit: int, hide_us: Span) -> list[OrphanRecord]:
        """Orphan groups that are to be reported, oldest first; each is given out again after hide_us unless it was.

        From this call on, every group that closes with nobody waiting is recorded, whatever its client asked for, until
        nobody has called this for domain.workflow.scope.ORPHANS_RECORDED_FOR (or up to a day less).
        """
        ...

    async def orphans_are_taken(self) -> bool:
        """Whether somebody called take_orphans so lately that the orphan groups of every client are recorded."""
        ...

    async def orphan_reported(self, orphan_id: str) -> None:
        """Forget an orphan group whose hook was called."""
        ...

    async def groups(self, tenant: str, ids: Sequence[str]) -> dict[str, GroupRecord]:
        """By id; a group that is only its root has no record."""
        ...

    async def contributions(self, tenant: str, group_id: str) -> list[GroupContribution]:
        """In the order they were folded."""
        ...

    async def cascade(self, limit: int) -> Consequences:
        """Go on with up to `limit` edges and scopes that a transition left for later."""
        ...

    async def chain(self, tenant: str, job_id: str, *, last: int | None = None) -> list[JobRecord]:
        """The members of the chain this job is in, first to last; a job that never continued is alone in it.

        A chain can be asked for by the id of its first member when that one is deleted. Its end may be gone, too: the
        last of these then has the flag CONTINUED.
        With `last` only so many from its end, at a cost that does not depend on its length.
        """
        ...

    async def dependencies(self, seq: int) -> list[Dependency]:
        """What this job waits for or waited for, by position; of groups with their values."""
        ...

    async def edges(self, seqs: Sequence[int]) -> list[Edge]:
        """What these jobs wait for or waited for, by child and position."""
        ...
