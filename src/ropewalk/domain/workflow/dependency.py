"""What a job waits for: a gate over other jobs, and when it opens or can no longer open.

Every condition is one sentence, "at least `need` of `total` parents are done" or "… have succeeded". A parent is a job,
the tree under a job (the job and everything queued under it: a group is the tree of its root), or a chain.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from msgspec import Struct

from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import Span

Of: TypeAlias = Literal["done", "success"]
Policy: TypeAlias = Literal["fail", "cancel", "skip", "run"]
NamedCondition: TypeAlias = Literal["all_success", "all_done", "any_done", "any_success"]


class ParentKind(StrEnum):
    JOB = "job"
    """The parent is the job alone."""
    TREE = "tree"
    """The parent is the job with everything queued under it."""
    CHAIN = "chain"
    """The parent is the job with its continuations, up to the one that ends without a continuation."""
    MISSING = "missing"
    """The parent was named with allow_missing and does not exist: it counts as done and as successful."""


class Ending(StrEnum):
    """How a parent ended, as far as its dependants are concerned."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ParentRef(Struct, frozen=True):
    """A parent as the submission of a job names it."""

    kind: ParentKind
    id: str


class NewGate(Struct, frozen=True, kw_only=True):
    """A gate as a submission describes it."""

    parents: tuple[ParentRef, ...]
    need: int
    of: Of
    policy: Policy | None = None
    """This says how the job ends if the gate can no longer open. None means "fail", or "cancel" if the parent whose end
    decided that was cancelled."""
    timeout_us: Span | None = None
    allow_missing: bool = False
    depth_max: int = 100


class Gate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A gate as the store keeps it in the record of the job that waits behind it."""

    total: int
    need: int
    of: Of
    policy: Policy | None = None
    timeout_us: Span | None = None
    done: int = 0
    """This many parents have ended."""
    ok: int = 0
    """This many parents have ended successfully."""


class Edge(Struct, frozen=True, kw_only=True):
    """`seq` waits for `parent` (a job's seq); `position` is the parent's place in `depends_on`."""

    kind: ParentKind
    parent: int
    parent_id: str
    seq: int
    position: int
    ending: Ending | None = None
    """The parent ended in this way; None until it has ended."""


class Opening(StrEnum):
    """Whether a gate is closed, is open, or can never open."""

    CLOSED = "closed"
    OPEN = "open"
    DOOMED = "doomed"
    """Too few of the remaining parents are left: the gate can no longer open."""


def needed(condition: NamedCondition, total: int) -> tuple[int, Of]:
    """Translates a named condition over `total` parents into the values of `need` and `of` of a gate."""
    match condition:
        case "all_success":
            return total, "success"
        case "all_done":
            return total, "done"
        case "any_done":
            return 1, "done"
        case "any_success":
            return 1, "success"


def opening(gate: Gate) -> Opening:
    """Decides from the counts of a gate whether it is closed, open or doomed."""
    hits = gate.ok if gate.of == "success" else gate.done
    if hits >= gate.need:
        return Opening.OPEN
    still_possible = hits + gate.total - gate.done
    return Opening.CLOSED if still_possible >= gate.need else Opening.DOOMED


def ending_of(status: Status) -> Ending:
    """Returns how a job with this terminal status ended, as its dependants see it."""
    match status:
        case Status.COMPLETED:
            return Ending.COMPLETED
        case Status.CANCELLED:
            return Ending.CANCELLED
        case Status.FAILED | Status.DEAD_LETTER:
            return Ending.FAILED
        case Status.WAITING | Status.RUNNING:
            raise AssertionError(f"{status} is no ending")
