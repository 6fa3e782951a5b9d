"""The capability for workflows: dependencies, groups, chains, steps, signals and compensation.

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
    """What became of the request to end a job from outside."""

    id: str
    job: JobRecord | None = None
    """The job after its end. None if it had ended already, or if there is no such job (`state` is None)."""
    state: State | None = None
    consequences: Consequences | None = None


class SignalAnswer(StrEnum):
    """What became of a signal."""

    DELIVERED = "delivered"
    """The job waited for the signal and is ready now."""
    KEPT = "kept"
    """The signal is in the mailbox of the job until its handler asks for it."""
    DUPLICATE = "duplicate"
    """The signal was sent before with the same id and is not stored again."""
    ALREADY_COMPLETE = "already_complete"
    NOT_FOUND = "not_found"


class StepAnswer(Struct, frozen=True, kw_only=True):
    """The answer to the record of a step."""

    lost: LossReason | None = None
    """The reason why the lease is lost, in which case nothing was written."""
    taken: StepRecord | None = None
    """The step as it was stored with the signal that `take_signal` took; None if there was no signal."""


class GroupRecord(Struct, frozen=True, kw_only=True):
    """A group that has more jobs than its root. The counts include all its jobs at any depth, and the root."""

    id: str
    generation: int
    """This number grows by one every time the group opens again after it was closed."""
    open: int
    """The number of jobs that have not ended."""
    completed: int
    failed: int
    cancelled: int
    closed_at: Instant | None
    cancelled_by: CancelRequest | None
    value: GroupValue = NOTHING


class GroupContribution(Struct, frozen=True, kw_only=True):
    """A stored contribution to the value of a group whose reader puts the value together (list, merge)."""

    type: str
    value: bytes | None


class Dependency(Struct, frozen=True, kw_only=True):
    """One parent of a job."""

    edge: Edge
    job: JobRecord | None
    """The parent, or the last member of the chain; None if it is missing or was deleted meanwhile."""
    group: GroupRecord | None = None
    """The group, if the parent is the tree of its root and the group has more jobs than the root."""
    contributions: tuple[GroupContribution, ...] = ()
    """The contributions to the value of that group, if its reader puts the value together (list, merge)."""


class OrphanRecord(Struct, frozen=True, kw_only=True):
    """An orphan group that is to be reported. Its `id` is the same however often it is reported."""

    id: str
    tenant: str
    group_id: str
    closed_at: Instant


class WorkflowStore(Protocol):
    """A store with signals, steps, ends from outside, groups, chains and dependencies.

    It also accepts gates, compensations and spawns in `submit`, completion plans and suspensions in `settle`, and
    cascades in `retry`. A store without this capability never gets any of these.
    """

    async def end(self, tenant: str, job_id: str, request: EndRequest) -> EndAnswer:
        """Applies domain.jobs.operations.end to a job, with all consequences of its end."""
        ...

    async def signal(
        self, tenant: str, job_id: str, name: str, value: bytes | None, *, signal_id: str | None = None
    ) -> SignalAnswer:
        """Puts a signal into the mailbox of a job, under the lock of the job. A suspension looks into the mailbox under
        the same lock.

        A signal that is sent again with the same `signal_id` within domain.workflow.completion.SIGNAL_KNOWN_FOR is a
        DUPLICATE and changes nothing, even if the first one was taken or the job has ended meanwhile.
        """
        ...

    async def steps(self, seq: int) -> list[StepRecord]:
        """Returns the stored steps of a job, ordered by position."""
        ...

    async def record_step(self, holder: Holder, step: StepRecord) -> StepAnswer:
        """Stores a finished step if the lease is valid. It replaces an unfinished step of the same position."""
        ...

    async def take_signal(self, holder: Holder, step: StepRecord, signal: str) -> StepAnswer:
        """Takes the oldest signal of this name out of the mailbox and stores it as `step`, if the lease is valid."""
        ...

    async def cancel_group(self, tenant: str, group_id: str, *, reason: str | None, force: bool) -> bool:
        """Marks every scope of a group, so that members that are written from now on are cancelled from the start.
        Returns False if there is no such group.

        The caller cancels the existing members in batches.
        """
        ...

    async def await_group(self, tenant: str, group_id: str, span_us: Span) -> None:
        """Records that somebody waits for a group this long. If it closes meanwhile, it is not an orphan group."""
        ...

    async def take_orphans(self, limit: int, hide_us: Span) -> list[OrphanRecord]:
        """Returns orphan groups that are to be reported, oldest first. One that is not reported within `hide_us` is
        returned again.

        From this call on, every group that closes with nobody waiting is recorded, whether its client wants it or not,
        until nobody has called this for domain.workflow.scope.ORPHANS_RECORDED_FOR, or up to a day less.
        """
        ...

    async def orphans_are_taken(self) -> bool:
        """Whether `take_orphans` was called so recently that the orphan groups of every client are recorded."""
        ...

    async def orphan_reported(self, orphan_id: str) -> None:
        """Deletes the record of an orphan group whose hook was called."""
        ...

    async def groups(self, tenant: str, ids: Sequence[str]) -> dict[str, GroupRecord]:
        """Returns the records of these groups by id. A group that consists only of its root has no record."""
        ...

    async def contributions(self, tenant: str, group_id: str) -> list[GroupContribution]:
        """Returns the contributions to the value of a group in the order in which they were folded."""
        ...

    async def cascade(self, limit: int) -> Consequences:
        """Continues postponed consequences: up to `limit` edges and scopes."""
        ...

    async def chain(self, tenant: str, job_id: str, *, last: int | None = None) -> list[JobRecord]:
        """Returns the members of the chain of this job from first to last; a job that never continued is its only
        member.

        The id of the first member names the chain even if that member was deleted. If the end of the chain was deleted,
        the last job of the answer has the flag CONTINUED. With `last`, only that many jobs from the end of the chain
        are returned, at a cost that does not depend on the length of the chain.
        """
        ...

    async def dependencies(self, seq: int) -> list[Dependency]:
        """Returns the parents of a job, ordered by position, with the values of groups among them."""
        ...

    async def edges(self, seqs: Sequence[int]) -> list[Edge]:
        """Returns the edges from these jobs to their parents, ordered by child and position."""
        ...
