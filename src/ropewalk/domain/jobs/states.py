"""The states of a job and the table of legal moves. Read this page first.

Six statuses are stored. The four waiting states people see are derived from `waiting` against the
store's clock, so time alone takes a job from delayed to scheduled and no sweep has to promote it.
Terminal is absorbing: only `retry` opens a new run of a finished job, and that is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Status(StrEnum):
    """What a store keeps."""

    WAITING = "waiting"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"
    CANCELLED = "cancelled"


class State(StrEnum):
    """What people see, in Python, HTTP, the CLI and the dashboard."""

    PENDING = "pending"
    """accepted, waits for dependencies or a signal"""
    DELAYED = "delayed"
    """waits for its time"""
    RETRYING = "retrying"
    """failed, waits for its backoff"""
    SCHEDULED = "scheduled"
    """ready for a worker"""
    RUNNING = "running"
    """leased by a worker instance"""
    COMPLETED = "completed"
    """terminal: success"""
    FAILED = "failed"
    """terminal: a permanent error"""
    DEAD_LETTER = "dead_letter"
    """terminal: attempts, crashes or deadline exhausted"""
    CANCELLED = "cancelled"
    """terminal: cancelled"""


class Move(StrEnum):
    """Everything that can happen to a job's status."""

    SUBMIT = "submit"
    CLAIM = "claim"
    COMPLETE = "complete"
    RETRY = "retry"
    """an error with attempts left: waits for its backoff"""
    DEFER = "defer"
    """the handler asked for another time: the attempt is given back"""
    SUSPEND = "suspend"
    """the handler sleeps or waits for a signal: the attempt is given back"""
    RELEASE = "release"
    """drained, declined or never started: the attempt is given back"""
    LOSE = "lose"
    """the lease ran out with attempts and crashes left: runs again at once"""
    FAIL = "fail"
    """a permanent error"""
    BURY = "bury"
    """attempts or crashes exhausted"""
    EXPIRE = "expire"
    """the deadline passed"""
    SET_ASIDE = "set_aside"
    """its stored row cannot be read"""
    CANCEL = "cancel"
    DOOM = "doom"
    """what it depends on can no longer succeed"""
    SKIP = "skip"
    """the same, where it asked to be passed over instead"""
    END = "end"
    """completed or failed from outside"""
    RESTART = "restart"
    """an operator's retry: a new run of a finished job"""
    DELETE = "delete"


W, R = Status.WAITING, Status.RUNNING
C, F, D, X = Status.COMPLETED, Status.FAILED, Status.DEAD_LETTER, Status.CANCELLED

TERMINAL: Final = frozenset({C, F, D, X})

# None is "not there". A pair absent here is illegal, on every store.
LEGAL_MOVES: Final[Mapping[Move, frozenset[tuple[Status | None, Status | None]]]] = MappingProxyType(
    {
        Move.SUBMIT: frozenset({(None, W), (None, R)}),
        Move.CLAIM: frozenset({(W, R)}),
        Move.COMPLETE: frozenset({(R, C)}),
        Move.RETRY: frozenset({(R, W)}),
        Move.DEFER: frozenset({(R, W)}),
        Move.SUSPEND: frozenset({(R, W)}),
        Move.RELEASE: frozenset({(R, W)}),
        Move.LOSE: frozenset({(R, W)}),
        Move.FAIL: frozenset({(R, F)}),
        Move.BURY: frozenset({(R, D)}),
        Move.EXPIRE: frozenset({(W, D), (R, D)}),
        Move.SET_ASIDE: frozenset({(W, D), (R, D)}),
        Move.CANCEL: frozenset({(W, X), (R, X)}),
        Move.DOOM: frozenset({(W, F)}),
        Move.SKIP: frozenset({(W, C)}),
        Move.END: frozenset({(W, C), (W, F), (R, C), (R, F)}),
        Move.RESTART: frozenset({(F, W), (D, W), (X, W)}),
        Move.DELETE: frozenset({(C, None), (F, None), (D, None), (X, None)}),
    }
)

# Where a worker's settlement leads. The store may turn one into another under the row lock (transition.final_move).
SETTLING: Final[Mapping[Move, Status]] = MappingProxyType(
    {
        Move.COMPLETE: C,
        Move.RETRY: W,
        Move.DEFER: W,
        Move.SUSPEND: W,
        Move.RELEASE: W,
        Move.LOSE: W,
        Move.FAIL: F,
        Move.BURY: D,
        Move.EXPIRE: D,
        Move.CANCEL: X,
    }
)

GIVES_ATTEMPT_BACK: Final = frozenset({Move.DEFER, Move.SUSPEND, Move.RELEASE})

# Through no fault of its own: it goes back to where it stood in line, unless it asked for another time.
KEEPS_ITS_PLACE: Final = frozenset({Move.RELEASE, Move.LOSE})


def is_legal(move: Move, before: Status | None, after: Status | None) -> bool:
    return (before, after) in LEGAL_MOVES[move]


def state_of(status: Status, *, unmet: int, run_at: int, last_move: Move, now: int) -> State:
    """The public state of a job at `now` by the store's clock."""
    if status is not Status.WAITING:
        return State(status.value)
    if unmet:
        return State.PENDING
    if run_at <= now:
        return State.SCHEDULED
    return State.RETRYING if last_move is Move.RETRY else State.DELAYED
