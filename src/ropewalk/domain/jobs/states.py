"""The states of a job and the table of legal moves. Read this page first.

A store keeps one of six statuses. People see four different states of a waiting job, which are derived from its record
and the store's clock. Time alone takes a job from delayed to scheduled, so no sweep has to promote it. A finished job
stays finished, unless somebody retries it, which begins a new run and is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Status(StrEnum):
    """The status of a job as a store keeps it."""

    WAITING = "waiting"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"
    CANCELLED = "cancelled"


class State(StrEnum):
    """The state of a job as people see it: in Python, HTTP, the command line and the dashboard."""

    PENDING = "pending"
    """The job waits for other jobs or for a signal."""
    DELAYED = "delayed"
    """The job waits for its time."""
    RETRYING = "retrying"
    """The job has failed and waits for its next attempt."""
    SCHEDULED = "scheduled"
    """The job is ready for a worker."""
    RUNNING = "running"
    """A worker has leased the job."""
    COMPLETED = "completed"
    """The job has ended in success."""
    FAILED = "failed"
    """The job has ended with a permanent error."""
    DEAD_LETTER = "dead_letter"
    """The job has ended because its attempts or crashes were used up, its deadline passed, or its row is damaged."""
    CANCELLED = "cancelled"
    """The job has ended because it was cancelled."""


class Move(StrEnum):
    """Everything that can happen to the status of a job."""

    SUBMIT = "submit"
    CLAIM = "claim"
    COMPLETE = "complete"
    RETRY = "retry"
    """The attempt failed, attempts are left, and the job waits for its backoff."""
    DEFER = "defer"
    """The handler asked to run at another time; the attempt does not count."""
    SUSPEND = "suspend"
    """The handler sleeps or waits for a signal; the attempt does not count."""
    RELEASE = "release"
    """The worker gave the job back without a fault of the job; the attempt does not count."""
    LOSE = "lose"
    """The lease ran out, attempts and crashes are left, and the job is ready at once."""
    FAIL = "fail"
    """The attempt failed with a permanent error."""
    BURY = "bury"
    """The attempt failed, and attempts or crashes are used up."""
    EXPIRE = "expire"
    """The deadline passed."""
    SET_ASIDE = "set_aside"
    """The stored row of the job cannot be read."""
    CANCEL = "cancel"
    DOOM = "doom"
    """The gate of the job can no longer open, and the job fails or, if its policy says so, runs anyway."""
    SKIP = "skip"
    """The gate of the job can no longer open, and its policy is to count as completed without running."""
    END = "end"
    """Somebody outside completed or failed the job."""
    RESTART = "restart"
    """Somebody retried a finished job, or a redrive did, which begins its next run."""
    DELETE = "delete"


W, R = Status.WAITING, Status.RUNNING
C, F, D, X = Status.COMPLETED, Status.FAILED, Status.DEAD_LETTER, Status.CANCELLED

TERMINAL: Final = frozenset({C, F, D, X})
"""A job with one of these statuses has ended."""

# The statuses before and after each move; None means that the job does not exist. Any other pair is illegal on every
# store.
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

# A settlement with one of these moves leads to this status, unless the store decides on another move under the lock of
# the row (transition.final_move).
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
"""The attempt that ends with one of these moves does not count."""

KEEPS_ITS_PLACE: Final = frozenset({Move.RELEASE, Move.LOSE})
"""The job is not the reason for these moves, so it goes back to its old place in the order if it is ready at once."""


def is_legal(move: Move, before: Status | None, after: Status | None) -> bool:
    """Whether a move may lead from one status to another; None means that the job does not exist."""
    return (before, after) in LEGAL_MOVES[move]


def state_of(status: Status, *, unmet: int, run_at: int, last_move: Move, now: int) -> State:
    """Returns the state of a job that people see at the instant `now` of the store's clock."""
    if status is not Status.WAITING:
        return State(status.value)
    if unmet:
        return State.PENDING
    if run_at <= now:
        return State.SCHEDULED
    return State.RETRYING if last_move is Move.RETRY else State.DELAYED
