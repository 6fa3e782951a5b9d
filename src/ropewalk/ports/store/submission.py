"""Part of the core: how jobs come in.

What holds for every verb of a store (core.py) holds here.
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
    """Insert already leased by this worker instance (attempt 1), where nothing stands in the way."""

    owner: str
    ticket: int
    lease_us: Span


class Submission(Struct, frozen=True, kw_only=True):
    """Jobs that are accepted together or not at all.

    `under` makes it a spawn: refused as stale unless the lease is current; the jobs join the holder's group and are
    open in its scope; a job whose (parent_id, spawn_key) exists already is answered as a duplicate, or SpawnMismatch
    where type or input differ.
    Gates name jobs that exist or are in the same submission, in any order. Refused, naming the field: unknown parents
    (NotFound, unless allow_missing), circles (InvalidInput), too deep (LimitExceeded), and from inside a group anything
    unfinished but siblings and jobs of groups opened earlier (InvalidInput): so nothing can ever wait for itself.
    `skip_queue` (one job, not delayed, queue not paused, no limit full) returns the job leased.
    """

    jobs: Sequence[NewJob]
    under: Holder | None = None
    skip_queue: SkipQueue | None = None


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
    """The job with its lease, where `skip_queue` took effect."""
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
    """Nothing was written, because this would have to wait for somebody else's transaction."""


SubmitAnswer: TypeAlias = "list[Accepted] | RopewalkError"
"""The answers in the order of the jobs; or Conflict, SpawnMismatch, QuotaExceeded, LeaseLost or MustWait for all."""


class Submitting(Protocol):
    """How jobs come in."""

    async def submit(self, submissions: Sequence[Submission], *, wait: bool = True) -> list[SubmitAnswer]:
        """Insert; each submission whole or not at all, independent of its neighbours, sharing one commit.

        Same id, same content: duplicate; same id, other content: Conflict. Idempotency keys by domain.jobs.idempotency,
        decided in this transaction. A repeated id or key inside one submission counts like one already stored.
        What is new and not `under` a lease must fit the quotas of its tenants (domain.limits.quota.Admission): what
        waits is counted in this transaction, and nobody else is let in meanwhile.

        With `wait=False` a submission that would have to wait for a transaction of somebody else's, which may stay open
        for long, is answered with MustWait and not written; its neighbours are not held up by it. A store with a single
        writer never answers so.
        """
        ...
