"""Part of the core: what a worker asks for when it claims, and what it gets. The verb is in leases.py."""

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
    """Give me up to `limit` ready jobs of these types.

    The first `slots` of them start at once; the rest wait in the worker's buffer, so a job on its last attempt or
    with crashes is given only within `slots`. Where one comes up and no slot is left for it, nothing more is given:
    nobody overtakes it, or none might ever be. How many jobs with crashes are given beside those that the worker holds
    (`suspects`) is up to domain.jobs.quarantine; where one may not be given, no further ones are.
    Claimed jobs get tickets first_ticket, first_ticket + 1, … in order; those up to `started_upto` count as
    started, and so does every earlier ticket of this worker up to it, but for those named as `unstarted` and those that
    this or an earlier claim named as `unanswered`.
    """

    owner: str
    types: Mapping[str, Span]
    """registered type → its lease"""
    tenants: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None
    slots: int
    limit: int
    room: Mapping[str, int] = {}
    """type → at most so many of it this time; one that is not named may fill the claim"""
    ignored: frozenset[int] = frozenset()
    """jobs (by seq) to leave where they are: this worker declined them a while ago"""
    suspects: Suspects = Suspects()
    """Those that this worker holds: jobs that were running when a worker died."""
    first_ticket: int
    started_upto: int
    unstarted: tuple[int, ...] = ()
    """tickets up to `started_upto` that wait all the same, as others overtook them; each claim names them anew"""
    unanswered: tuple[TicketRange, ...] = ()
    """Tickets of claims whose answer never arrived. The worker does not know which jobs they stand for and starts none:
    their leases are given back before anything else, and the store remembers the tickets as never started."""
    turn: int = 0
    """Number of this claim, which grows with every claim of a worker. A claim that arrives after a later one changes
    nothing about what has started. It also says which line goes first (domain.jobs.order.take_turns)."""
    first: TenantQueue | None = None
    """The line that goes first instead, if it has something to give: the last claim ended there without a free slot."""
    take_back_until: Instant | None = None
    """The last instant, by the store's clock, at which this claim may take back expired leases
    (domain.jobs.lease.may_take_back); None is always, 0 never."""


class Claimed(Struct, frozen=True, kw_only=True):
    """The answer to a claim: the jobs that are leased now, and what else happened on the way."""

    now: Instant
    jobs: list[JobRecord]
    moved: list[Moved]
    """The jobs whose expired leases were taken back, those past their deadline, and what that doomed."""
    next_due: Instant | None
    """When there may be more: the next job of these types comes due, or a limit that held some back leaves room."""
    closed: list[ClosedGroup] = []
    """The groups that closed with it."""
    limited: list[int] = []
    """The leased jobs (by seq) that count against a limit: when they end, others may have waited for that."""
    held_up: TenantQueue | None = None
    """Where a job comes next that must start at once, and no slot was left for it: the next claim begins there."""
    passed_over: list[PassedOver] = []
    """Records that stay as they are, because changing them raised an error that nobody expects."""
