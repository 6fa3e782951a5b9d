"""The messages of a claim, which is a part of the core. The verb is in leases.py."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ropewalk.domain.jobs.lease import TicketRange
from ropewalk.domain.jobs.order import TenantQueue
from ropewalk.domain.jobs.quarantine import Suspects
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import Instant, Span
from ropewalk.ports.store.consequences import ClosedGroup, Moved, PassedOver


class ClaimRequest(Struct, frozen=True, kw_only=True):
    """The request of a worker to lease up to `limit` ready jobs of its types.

    The first `slots` jobs start at once, and the others wait in the buffer of the worker. A job that must start at once
    (domain.jobs.quarantine.must_start_at_once) is leased only within `slots`. If such a job is next and no slot is left
    for it, the claim ends there: if other jobs could overtake it, it might wait for ever. How many suspects are leased
    beside those that the worker has is decided by domain.jobs.quarantine; if one is refused, all further ones are.

    The jobs get the tickets first_ticket, first_ticket + 1, … in their order. Every ticket of this worker up to
    `started_upto` counts as started, except those in `unstarted` and those that this or an earlier claim named in
    `unanswered`.
    """

    owner: str
    types: Mapping[str, Span]
    """The registered types, each with the length of its lease."""
    tenants: tuple[str, ...] | None = None
    """The tenants whose jobs the worker runs; None means all."""
    queues: tuple[str, ...] | None = None
    """The queues whose jobs the worker runs; None means all."""
    slots: int
    """This many slots of the worker are free."""
    limit: int
    """The claim leases at most this many jobs."""
    room: Mapping[str, int] = {}
    """The claim leases at most so many jobs of each type that is named here."""
    ignored: frozenset[int] = frozenset()
    """The claim ignores these jobs, given by seq, because the worker declined them a while ago."""
    suspects: Suspects = Suspects()
    """The suspects among the jobs that the worker has leased."""
    first_ticket: int
    started_upto: int
    unstarted: tuple[int, ...] = ()
    """The jobs with these tickets, which are not above `started_upto`, have not started, because others overtook them.
    Each claim names all of them again."""
    unanswered: tuple[TicketRange, ...] = ()
    """These tickets belong to claims whose answer never arrived. The worker does not know the jobs and starts none of
    them. The store gives back their leases first, and remembers that the tickets never started."""
    turn: int = 0
    """The number of this claim, which grows with every claim of a worker. A claim that arrives after a later one does
    not change which tickets have started. The number also decides which line goes first (domain.jobs.order)."""
    first: TenantQueue | None = None
    """This line goes first instead if it has ready jobs, because the last claim ended there without a free slot."""
    take_back_until: Instant | None = None
    """The last instant, by the store's clock, at which this claim may take back expired leases
    (domain.jobs.lease.may_take_back). None sets no limit, and 0 means never."""


class Claimed(Struct, frozen=True, kw_only=True):
    """The answer to a claim: the jobs that are leased now, and what else the claim changed."""

    now: Instant
    jobs: list[JobRecord]
    moved: list[Moved]
    """The jobs whose expired leases were taken back, those whose deadline had passed, and those that this doomed."""
    next_due: Instant | None
    """The instant at which there may be more jobs: one of these types comes due, or a full limit leaves room again."""
    closed: list[ClosedGroup] = []
    """The groups that the claim closed, because it ended jobs."""
    limited: list[int] = []
    """The leased jobs, by seq, that count against a limit: other jobs may wait until they end."""
    held_up: TenantQueue | None = None
    """The line whose next job must start at once although no slot was left for it. The next claim begins there."""
    passed_over: list[PassedOver] = []
    """Records that stay as they are, because changing them raised an error that nobody expects."""
