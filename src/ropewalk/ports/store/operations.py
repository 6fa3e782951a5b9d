"""The part of the core with which people change jobs, queues and workers.

The rules for every verb are in core.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from ropewalk.domain.jobs.operations import CancelStatus, RetryRequest, RetryStatus, UpdateRequest
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import Instant
from ropewalk.ports.store.consequences import Consequences


class CancelAnswer(Struct, frozen=True, kw_only=True):
    """What became of the cancellation of one job."""

    id: str
    status: CancelStatus
    previous: State | None


class Cancellations(Struct, frozen=True, kw_only=True):
    """The answers to a batch of cancellations."""

    answers: list[CancelAnswer]
    """The answers in the order of the ids."""
    consequences: Consequences


class RetryAnswer(Struct, frozen=True, kw_only=True):
    """What became of the retry of one job."""

    id: str
    status: RetryStatus
    state: State | None = None
    run_at: Instant | None = None
    reason: str | None = None
    """Why the job was not retried: state_completed, key_in_use, unmet_dependencies, damaged_row, …"""


class UpdateAnswer(Struct, frozen=True, kw_only=True):
    """What became of the update of one job."""

    id: str
    job: JobRecord | None = None
    """The updated job. None if nothing has changed: the job does not exist (`state` is None), it does not wait, or it
    has another rev (`rev` is not None)."""
    state: State | None = None
    rev: int | None = None
    """The rev of a waiting job that was left as it is, because the request expects another one (`if_rev`)."""


class Deletion(StrEnum):
    """What became of the deletion of one job."""

    DELETED = "deleted"
    NOT_TERMINAL = "not_terminal"
    IN_USE = "in_use"
    """A job that has not ended depends on it, or what was queued under it is not finished."""
    NOT_FOUND = "not_found"


class Purged(Struct, frozen=True, kw_only=True):
    """What became of the jobs that were to be purged."""

    answers: dict[str, Deletion]
    """What became of each job, by id. A running job is NOT_TERMINAL. If `together` was asked for and jobs run, only
    these are in the answer."""
    cancelled: list[JobRecord] = []
    """The waiting jobs, which were cancelled, whether they could then be deleted or not."""
    consequences: Consequences = Consequences()


class Operating(Protocol):
    """The verbs with which people change jobs, queues and workers."""

    async def cancel(self, tenant: str, ids: Sequence[str], *, reason: str | None, force: bool) -> Cancellations:
        """Applies domain.jobs.operations.cancel to each job independently. Jobs that end because of it close their
        keys."""
        ...

    async def retry(self, tenant: str, ids: Sequence[str], request: RetryRequest) -> list[RetryAnswer]:
        """Applies domain.jobs.operations.retry to each job, to parents before their children. A retried job takes its
        idempotency key again.

        A retry is refused with `key_in_use` if another job has the key, with `unmet_dependencies` if the job never
        started and its gate can no longer open, and with `dependants_unresolved` if the consequences of its end for its
        dependants are still postponed: the caller then calls `cascade` and repeats the retry. A job that never started
        waits behind its gate again, for those of its parents that have not ended or are open again.

        The scope of the job and the scopes above it open again, with a new generation if they had closed. Resolved
        edges stay resolved. With `cascade`, dependants that the job doomed before their first start wait again. `fresh`
        also forgets its steps. `from_step` forgets the first stored step of that name and those at later positions; the
        retry is refused with `no_such_step` if there is none.
        """
        ...

    async def update(self, tenant: str, job_id: str, request: UpdateRequest) -> UpdateAnswer:
        """Applies domain.jobs.operations.update to a waiting job. If the input changes, its idempotency key stands for
        the new input. With `if_rev` the job is read and changed in one transaction, so that of several such updates
        only one happens."""
        ...

    async def delete(self, tenant: str, ids: Sequence[str]) -> dict[str, Deletion]:
        """Deletes finished jobs with everything that is recorded about them. A dependant that is deleted in the same
        call does not keep a job from being deleted."""
        ...

    async def purge(self, tenant: str, ids: Sequence[str], *, together: bool = False) -> Purged:
        """Deletes finished jobs as `delete` does, and waiting jobs, in one transaction.

        Waiting jobs are cancelled first, with all consequences of their end. Running jobs are left alone and not asked
        to stop. With `together`, nothing happens if one of the jobs runs.
        """
        ...

    async def pause(self, tenant: str, queue: str, *, paused: bool) -> None:
        """Pauses or resumes a queue. No job of a paused queue is claimed; running jobs go on."""
        ...

    async def drain(self, owner: str) -> bool:
        """Asks a worker to stop: its card shows this, and its renewals answer it. Returns False if there is no such
        worker.

        This cannot be undone: the instance never serves again, whatever card it registers.
        """
        ...
