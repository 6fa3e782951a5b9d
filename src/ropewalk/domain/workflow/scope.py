"""What is open under a job. A group is the scope of its root job.

A job that spawns, queues or continues owns a scope, numbered like the job itself. Its members are the jobs queued under
it; a chain's continuations are members of its first job's scope. `open` counts the owner, until it is terminal, and
every member whose own tree is not finished; the scope closes when that reaches zero, decided by this counter under the
row's lock and never by counting rows. Plain jobs own none: their tree ends with them.
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
"""How long the orphan groups of every client are recorded after a worker has asked for them, for it may be away."""
ORPHANS_RENEWED_AFTER: Final[Span] = DAY
"""So often, and not with every call, does whoever goes on asking write that down."""


class Scope(Struct, kw_only=True):
    id: int
    """the seq of its owner"""
    tenant: str
    owner_id: str
    group_id: str
    root: int
    """the scope of the group's root: there the group's value is kept"""
    parent: int | None
    """the scope its owner is a member of"""
    generation: int = 1
    """+1 every time it opens again after it closed"""
    open: int
    members: int = 0
    completed: int = 0
    """members by how they ended themselves, like failed and cancelled"""
    failed: int = 0
    cancelled: int = 0
    broken: int = 0
    """trees in it that did not succeed, the owner's own failure included"""
    cancel: CancelRequest | None = None
    """set when the group was cancelled while this scope was open: members written later are born cancelled"""
    awaited_until: Instant | None = None
    closed_at: Instant | None = None
    report_orphan: bool = False
    """its client wants to hear of it, whether or not a worker has asked for such groups yet"""
    value: GroupValue = NOTHING

    @property
    def ending(self) -> Ending:
        """Of the tree, once it is closed. A group whose value cannot be told failed: nothing may go on with it."""
        return Ending.FAILED if self.broken or self.value.conflict is not None else Ending.COMPLETED

    @property
    def failure(self) -> str | None:
        """What the scope is and why it failed, for whoever depends on it; None where it is open or succeeded."""
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
    """What happened in one scope, summed over a batch."""

    scope: int
    left: int = 0
    """members whose tree ended (or the owner itself)"""
    broken: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0

    def count(self, status: Status) -> None:
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
        self.left += 1
        self.broken += not ok

    def add(self, other: ScopeChange) -> None:
        self.left += other.left
        self.broken += other.broken
        self.completed += other.completed
        self.failed += other.failed
        self.cancelled += other.cancelled


def opened(owner: JobRecord, *, root: Scope | None, above: Scope | None) -> Scope:
    """The scope of a job that gets its first member. A cancelled group's mark goes on to it from the scope above.

    A compensation must not be cancelled by that mark, so it does not go on to what a compensation queues.
    It counts its owner as open even where the owner ends in the same transaction: its ending is applied after this.
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
    """New members, written in the same transaction as the scope."""
    assert scope.open > 0, f"scope {scope.id} is closed: nothing can be queued under a finished job"
    scope.open += members
    scope.members += members


def change(scope: Scope, changed: ScopeChange, now: Instant) -> bool:
    """Apply what happened; True when the scope closes with it."""
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
    """A tree in it (or its owner) is open again; True when the scope was closed. Then it is not cancelled any more."""
    was_closed = scope.closed_at is not None
    if was_closed:
        scope.closed_at = None
        scope.cancel = None
        scope.generation += 1
    scope.open += 1
    scope.broken -= was_broken
    return was_closed


def uncount(scope: Scope, status: Status) -> None:
    """A member that had ended like this is open again."""
    match status:
        case Status.COMPLETED:
            scope.completed -= 1
        case Status.CANCELLED:
            scope.cancelled -= 1
        case Status.FAILED | Status.DEAD_LETTER:
            scope.failed -= 1
        case Status.WAITING | Status.RUNNING:
            raise AssertionError(f"{status} is no ending")
