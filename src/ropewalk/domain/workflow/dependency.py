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
    """the job alone"""
    TREE = "tree"
    """the job and everything queued under it"""
    CHAIN = "chain"
    """the job and its continuations, until one ends without continuing"""
    MISSING = "missing"
    """named with allow_missing and not there: counts as done and successful"""


class Ending(StrEnum):
    """How a parent ended, as far as its dependants are concerned."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ParentRef(Struct, frozen=True):
    kind: ParentKind
    id: str


class NewGate(Struct, frozen=True, kw_only=True):
    """As submitted."""

    parents: tuple[ParentRef, ...]
    need: int
    of: Of
    policy: Policy | None = None
    """None: fail, or cancel where the parent that decided it was cancelled"""
    timeout_us: Span | None = None
    allow_missing: bool = False
    depth_max: int = 100


class Gate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """As stored with the job that waits behind it."""

    total: int
    need: int
    of: Of
    policy: Policy | None = None
    timeout_us: Span | None = None
    done: int = 0
    ok: int = 0


class Edge(Struct, frozen=True, kw_only=True):
    """`seq` waits for `parent` (a job's seq); `position` is the parent's place in `depends_on`."""

    kind: ParentKind
    parent: int
    parent_id: str
    seq: int
    position: int
    ending: Ending | None = None
    """None until the parent ended"""


class Opening(StrEnum):
    """What a gate says."""

    CLOSED = "closed"
    OPEN = "open"
    DOOMED = "doomed"
    """it can no longer open"""


def needed(condition: NamedCondition, total: int) -> tuple[int, Of]:
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
    hits = gate.ok if gate.of == "success" else gate.done
    if hits >= gate.need:
        return Opening.OPEN
    still_possible = hits + gate.total - gate.done
    return Opening.CLOSED if still_possible >= gate.need else Opening.DOOMED


def ending_of(status: Status) -> Ending:
    match status:
        case Status.COMPLETED:
            return Ending.COMPLETED
        case Status.CANCELLED:
            return Ending.CANCELLED
        case Status.FAILED | Status.DEAD_LETTER:
            return Ending.FAILED
        case Status.WAITING | Status.RUNNING:
            raise AssertionError(f"{status} is no ending")
