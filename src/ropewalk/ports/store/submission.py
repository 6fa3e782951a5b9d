"""The part of the core with which jobs are submitted.

The rules for every verb are in core.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from ropewalk.domain.jobs.idempotency import ignored_options
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import State, Status
from ropewalk.domain.time import Instant, Span
from ropewalk.errors import RopewalkError
from ropewalk.ports.store.leases import Holder


class SkipQueue(Struct, frozen=True):
    """The wish of a worker to get a submitted job at once, already leased for its first attempt."""

    owner: str
    ticket: int
    lease_us: Span


class Submission(Struct, frozen=True, kw_only=True):
    """Jobs that are accepted together or not at all.

    A gate names jobs that exist or are in the same submission, in any order. A submission is refused, with the name of
    the field, if a parent is unknown (NotFound, unless `allow_missing` is set), if its jobs wait for one another
    (InvalidInput), or if its dependencies are too deep (LimitExceeded). A job inside a group may depend on finished
    jobs, on siblings, and on jobs of groups that were opened earlier; anything else is refused (InvalidInput), so that
    nothing can ever wait for itself.
    """

    jobs: Sequence[NewJob]
    under: Holder | None = None
    """The lease of the running job that spawns these jobs. The submission is refused as stale unless the lease is
    valid. The jobs join the group of the running job and are open in its scope. If a job has a (parent_id, spawn_key)
    that exists already, it is a duplicate, or a SpawnMismatch if type or input differ."""
    skip_queue: SkipQueue | None = None
    """The single job is leased at once, unless it is delayed, its queue is paused, or a limit is full."""


class Accepted(Struct, frozen=True, kw_only=True, gc=False):
    """A job that is stored, or that was there already."""

    id: str
    """The id of the new job, or of the existing one that it duplicates."""
    duplicate: bool
    state: State
    created_at: Instant
    run_at: Instant
    group_id: str
    leased: JobRecord | None = None
    """The job with its lease, if `skip_queue` had an effect."""
    ignored: tuple[str, ...] = ()
    """The options in which a duplicate differs from the job that is there (domain.jobs.idempotency)."""

    @classmethod
    def of(cls, job: JobRecord, now: Instant, *, duplicate: bool, new: NewJob | None = None) -> Accepted:
        return cls(
            ignored=ignored_options(job, new) if duplicate and new is not None else (),
            id=job.id,
            duplicate=duplicate,
            state=job.state_at(now),
            created_at=job.created_at,
            run_at=job.run_at,
            group_id=job.group_id or job.id,
            leased=job if job.status is Status.RUNNING and not duplicate else None,
        )


class MustWait(RopewalkError):
    """Nothing was written, because the submission would have to wait for another transaction."""


SubmitAnswer: TypeAlias = "list[Accepted] | RopewalkError"
"""The answers in the order of the jobs, or the error that refused all of them: Conflict, SpawnMismatch, QuotaExceeded,
LeaseLost or MustWait, for example."""


class Submitting(Protocol):
    """The verb with which jobs are submitted."""

    async def submit(self, submissions: Sequence[Submission], *, wait: bool = True) -> list[SubmitAnswer]:
        """Inserts jobs, with one commit for all submissions. Each submission is written completely or not at all,
        independently of the others.

        A job with the id of another one is a duplicate if its content is the same, and a Conflict if it is not.
        Idempotency keys are compared in this transaction, by domain.jobs.idempotency. A repeated id or key inside one
        submission counts like one that is already stored. New jobs that are not `under` a lease must fit the quotas of
        their tenants (domain.limits.quota.Admission): this transaction counts the waiting jobs, and lets nobody else
        submit for these tenants meanwhile.

        With `wait=False`, a submission that would have to wait for another transaction, which may stay open for long,
        is answered with MustWait and not written, so that it does not delay the others. A store with a single writer
        never gives this answer.
        """
        ...
