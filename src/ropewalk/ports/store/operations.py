"""Part of the core: how people change jobs, queues and workers.

What holds for every verb of a store (core.py) holds here.
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
    """The updated job. None where nothing changed: it does not exist (`state` is None), or it does not wait."""
    state: State | None = None


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
    """What became of each job, by id: NOT_TERMINAL where it runs. With `together` and any that run, these alone."""
    cancelled: list[JobRecord] = []
    """The jobs that waited, as they were cancelled, whether they could be removed or not."""
    consequences: Consequences = Consequences()


class Operating(Protocol):
    """How people change jobs, queues and workers."""

    async def cancel(self, tenant: str, ids: Sequence[str], *, reason: str | None, force: bool) -> Cancellations:
        """domain.jobs.operations.cancel on each, independently. Jobs that end with it close their keys."""
        ...

    async def retry(self, tenant: str, ids: Sequence[str], request: RetryRequest) -> list[RetryAnswer]:
        """domain.jobs.operations.retry on each, parents before their children. Reopens its key.

        Refused with `key_in_use` where another job has its key; with `unmet_dependencies` where it never started and
        its gate can no longer open; and with `dependants_unresolved` where what its end means for its dependants is
        still deferred work: whoever asks does that (`cascade`) and asks again. A job that never started is put back
        behind its gate: it waits for those of its parents that have not ended, or are open again.

        Its scope and those above it open again (a new generation where they had closed). Resolved edges stay so; with
        `cascade`, dependants it had doomed before their first start wait again. `fresh` also forgets its steps.
        """
        ...

    async def update(self, tenant: str, job_id: str, request: UpdateRequest) -> UpdateAnswer:
        """domain.jobs.operations.update, on a waiting job only. With a new input, its key stands for that."""
        ...

    async def delete(self, tenant: str, ids: Sequence[str]) -> dict[str, Deletion]:
        """Remove terminal jobs with everything recorded about them. A dependant among `ids` does not protect."""
        ...

    async def purge(self, tenant: str, ids: Sequence[str], *, together: bool = False) -> Purged:
        """Remove terminal jobs as `delete` does, and jobs that wait, in one transaction.

        What waits is cancelled first, with all that an ending brings. What runs is left alone, not even asked to stop.
        With `together` nothing happens at all where one of them runs.
        """
        ...

    async def pause(self, tenant: str, queue: str, *, paused: bool) -> None:
        """Paused queues are not claimed from; running jobs go on."""
        ...

    async def drain(self, owner: str) -> bool:
        """Tell a worker to stop: its card shows it, and its renewals answer it. False: no such worker.

        For good: an instance that was told never serves again, whatever card it registers with.
        """
        ...
