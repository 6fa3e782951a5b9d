"""A scope counts what is still open under one job. A group is the scope of its root job.

A job that spawns, queues or continues owns a scope, which has the same number as the job. The members of a scope are
the jobs queued under its owner; the continuations of a chain are members of the scope of its first job. The tree of a
job is the job with everything under it. `open` counts the owner, until the owner is terminal, and every member whose
tree is not finished. The scope closes when the counter reaches zero; a store changes the counter under the lock of its
row and never counts rows. A plain job owns no scope: its tree ends with the job.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ropewalk.domain.jobs.flags import REPORT_ORPHAN
from ropewalk.domain.jobs.record import CancelRequest, JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import DAY, Instant, Span
from ropewalk.domain.workflow.dependency import Ending
from ropewalk.domain.workflow.group_value import NOTHING, GroupValue

ORPHANS_RECORDED_FOR: Final[Span] = 7 * DAY
"""Orphan groups are recorded for this long after the last worker asked for them, because that worker may come back."""
ORPHANS_RENEWED_AFTER: Final[Span] = DAY
"""A worker that asks again extends the recording only this often, so that most of its calls write nothing."""


class Scope(Struct, kw_only=True):
    """The counters of one scope and, in the scope of a root job, the value of the group."""

    id: int
    """This is the seq of the job that owns the scope."""
    tenant: str
    owner_id: str
    group_id: str
    root: int
    """This is the number of the scope of the group's root job, which contains the value of the group."""
    parent: int | None
    """The owner is a member of this scope; None for a root job."""
    generation: int = 1
    """This number grows by one every time the scope opens again after it was closed."""
    open: int
    members: int = 0
    completed: int = 0
    """This many members have themselves completed, whatever became of the jobs under them."""
    failed: int = 0
    """This many members have themselves failed."""
    cancelled: int = 0
    """This many members have themselves been cancelled."""
    broken: int = 0
    """This many trees in the scope did not succeed; a failure of the owner counts as one."""
    cancel: CancelRequest | None = None
    """The group was cancelled by this request while the scope was open: members that are written later are cancelled
    from the start."""
    awaited_until: Instant | None = None
    """Somebody waits for the group until this instant, so that it is not an orphan group if it closes before."""
    closed_at: Instant | None = None
    report_orphan: bool = False
    """The client wants the group to be reported if it becomes an orphan, even if no worker has asked for such
    groups."""
    value: GroupValue = NOTHING

    @property
    def ending(self) -> Ending:
        """How the tree ended, once the scope is closed. A group whose value is unknown has failed, so that no job goes
        on with that value."""
        return Ending.FAILED if self.broken or self.value.conflict is not None else Ending.COMPLETED

    @property
    def failure(self) -> str | None:
        """A text for the dependants that names the scope and says why it failed; None if it is open or succeeded."""
        if self.closed_at is None or self.ending is Ending.COMPLETED:
            return None
        if self.parent is not None:
            what = f"{self.owner_id} and what was queued under it"
        else:
            what = f"the group of {self.owner_id}"
        if not self.broken:
            return f"{what}, whose value cannot be told: {self.value.conflict}"
        if self.failed:
            return f"{what}, where a job failed"
        return f"{what}, where {'a job was cancelled' if self.cancelled else 'not every job completed'}"


class ScopeChange(Struct, kw_only=True):
    """The changes to the counters of one scope, summed over a batch of jobs that ended."""

    scope: int
    left: int = 0
    """This many trees of members have ended; the end of the owner counts, too."""
    broken: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0

    def count(self, status: Status) -> None:
        """Counts a member that itself ended with this status."""
        match status:
            case Status.COMPLETED:
                self.completed += 1
            case Status.CANCELLED:
                self.cancelled += 1
            case Status.FAILED | Status.DEAD_LETTER:
                self.failed += 1
            case Status.WAITING | Status.RUNNING:
                raise AssertionError(f"{status} is no ending")

    def leave(self, *, ok: bool) -> None:
        """Counts a tree that ended, or the end of the owner."""
        self.left += 1
        self.broken += not ok

    def add(self, other: ScopeChange) -> None:
        self.left += other.left
        self.broken += other.broken
        self.completed += other.completed
        self.failed += other.failed
        self.cancelled += other.cancelled


def opened(owner: JobRecord, *, root: Scope | None, above: Scope | None) -> Scope:
    """Returns the scope of a job that gets its first member. If the group was cancelled, the mark of that is copied
    from the scope above.

    The mark is not copied to the scope of a compensation, because the jobs that a compensation queues must not be
    cancelled by it. The scope counts its owner as open even if the owner ends in the same transaction, because that end
    is applied later.
    """
    return Scope(
        id=owner.seq,
        tenant=owner.tenant,
        owner_id=owner.id,
        group_id=owner.group_id or owner.id,
        root=owner.seq if root is None else root.id,
        parent=owner.scope_id,
        open=1,
        cancel=None if above is None or owner.origin is not None else above.cancel,
        report_orphan=root is None and bool(owner.flags & REPORT_ORPHAN),
    )


def cancel(scope: Scope, request: CancelRequest) -> None:
    """The group is cancelled. A scope that has closed is not marked: nothing is queued into it unless it reopens."""
    if scope.closed_at is None:
        scope.cancel = request


def cancels(scope: Scope, job: JobRecord) -> bool:
    """Whether this new member is born cancelled: all are in a cancelled group, except compensations."""
    return scope.cancel is not None and job.origin is None


def join(scope: Scope, members: int) -> None:
    """Counts new members, which are written in the same transaction as the scope."""
    assert scope.open > 0, f"scope {scope.id} is closed: nothing can be queued under a finished job"
    scope.open += members
    scope.members += members


def change(scope: Scope, changed: ScopeChange, now: Instant) -> bool:
    """Applies a change to a scope. Returns True if the scope closes with it."""
    scope.completed += changed.completed
    scope.failed += changed.failed
    scope.cancelled += changed.cancelled
    scope.broken += changed.broken
    scope.open -= changed.left
    assert scope.open >= 0, f"more left scope {scope.id} than were in it"
    if scope.open or not changed.left:
        return False
    scope.closed_at = now
    return True


def reopen(scope: Scope, *, was_broken: bool) -> bool:
    """Counts a tree of a member, or the owner, as open again. Returns True if the scope was closed; it is not cancelled
    any more then."""
    was_closed = scope.closed_at is not None
    if was_closed:
        scope.closed_at = None
        scope.cancel = None
        scope.generation += 1
    scope.open += 1
    scope.broken -= was_broken
    return was_closed


def uncount(scope: Scope, status: Status) -> None:
    """Takes back the count of a member that had ended with this status and is open again."""
    match status:
        case Status.COMPLETED:
            scope.completed -= 1
        case Status.CANCELLED:
            scope.cancelled -= 1
        case Status.FAILED | Status.DEAD_LETTER:
            scope.failed -= 1
        case Status.WAITING | Status.RUNNING:
            raise AssertionError(f"{status} is no ending")
