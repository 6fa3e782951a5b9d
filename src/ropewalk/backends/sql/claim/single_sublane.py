"""A claim in one trip, where all that is ready is one sublane: most of the time, of most workers.

The claim before found one sublane and nothing that held any of its jobs back. If that is still so, which the
statement itself sees, it leases what comes first, as claim.py would, and the transaction ends with it. If anything is
otherwise (another sublane has ready jobs, something is due, it is time to look for lost leases, a limit was set, a
queue was paused, or one of the jobs is past its deadline, may not wait in a buffer, or has a lease of its own), it
leases nothing, and the claim is made as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from ropewalk.backends.sql.claim.cache import BEFORE_ALL, ClaimCache, Rank, SingleSublane
from ropewalk.backends.sql.claim.snapshot import ClaimSnapshot, NamesOf, asked_by, rank_of
from ropewalk.backends.sql.columns import AS_READY, SHARED_IN_LANE
from ropewalk.backends.sql.damage import ids_of
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.maintenance import set_aside
from ropewalk.backends.sql.rows import load, records_of
from ropewalk.backends.sql.tx import SqlValue, Tx
from ropewalk.domain.jobs.flags import OWN_LEASE
from ropewalk.domain.jobs.record import RECORD_FORMAT, JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.jobs.transition import EPOCH_SHIFT, claim_all
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import Instant
from ropewalk.ports.store.claims import Claimed, ClaimRequest


class Asked(NamedTuple):
    single: SingleSublane
    look: bool
    values: dict[str, SqlValue]


def claim_single_sublane(tx: Tx, lanes: LaneBook, cache: ClaimCache, request: ClaimRequest) -> Claimed | None:
    """None where it takes more than that."""
    asked = None if tx.careful else ask(cache, request, tx.given_now)
    if asked is None:
        return None
    found = tx.last_row(tx.sql.claim_single_sublane, asked.values)
    return tell(found, asked, cache, request, lambda dues: lanes.names_of(tx, dues))


def ask(cache: ClaimCache, request: ClaimRequest, now: Instant | None) -> Asked | None:
    """What the statement is given, if this claim may be such a one. Without `now` the store knows the time."""
    single = cache.single
    if single is None or not _suits(single, request):
        return None
    look = cache.sublanes is None
    after = BEFORE_ALL if look else cache.start_of(single.sublane)
    values = _values(single, request, now, look=look, after=after)
    values["sweep_from"], values["sweep_by"] = cache.no_sweep_between
    return Asked(single, look, values)


def tell(
    found: Sequence[Any] | None, asked: Asked, cache: ClaimCache, request: ClaimRequest, names: NamesOf
) -> Claimed | None:
    """What came of it; None where anything was otherwise."""
    assert found is not None
    now, as_expected, *rest = found
    if not as_expected:
        cache.single = None
        return None
    *situated, contradicted = rest[:7]
    situation, jobs = ClaimSnapshot(situated, request, now), _records(rest[7:], contradicted=contradicted)
    epoch, first_ticket = situation.epoch, request.first_ticket
    claim_all(jobs, request.owner, first_ticket=first_ticket, epoch=epoch, leases=request.types, now=now)
    if asked.look:
        cache.looked(*situation.decoded_ready())
    if jobs:
        cache.granted(now + request.types[asked.single.lane.type])
        cache.reached(asked.single.sublane, rank_of(jobs[-1]))
    times = (situation.next_ready(names), situation.next_wait)
    return Claimed(now=now, jobs=jobs, moved=[], next_due=min(filter(None, times), default=None))


class LeasedUnread(Exception):
    """The statement leased these jobs and its transaction is over, but the row of one of them cannot be decoded, or
    contradicts its lane."""

    def __init__(self, seqs: frozenset[int]) -> None:
        super().__init__(f"the rows of {len(seqs)} leased jobs cannot be read")
        self.seqs = seqs


def read_leased(tx: Tx, lanes: LaneBook, unread: LeasedUnread) -> Claimed:
    """What the claim would have answered, without the damaged jobs: these are set aside. Read carefully."""
    aside = set_aside(tx, lanes, unread.seqs)
    leased = load(tx, sorted(unread.seqs))
    jobs = [job for job in leased if job.status is Status.RUNNING and not job.damaged]
    jobs.sort(key=attrgetter("ticket"))
    return Claimed(now=tx.now, jobs=jobs, moved=aside.moved, closed=aside.closed, next_due=None)


def _records(found: Sequence[Any], *, contradicted: bool) -> list[JobRecord]:
    try:
        jobs = records_of(found)
    except msgspec.DecodeError as error:
        raise LeasedUnread(frozenset(ids_of(found[0]))) from error
    if contradicted:
        raise LeasedUnread(frozenset(job.seq for job in jobs))
    return jobs


def _suits(single: SingleSublane, request: ClaimRequest) -> bool:
    tenant, queue, job_type, _ = single.lane
    return (
        job_type in request.types
        and (request.tenants is None or tenant in request.tenants)
        and (request.queues is None or queue in request.queues)
        and not request.room
        and not request.passing
        and not request.unanswered
    )


def _values(
    single: SingleSublane, request: ClaimRequest, now: Instant | None, *, look: bool, after: Rank
) -> dict[str, SqlValue]:
    prio_key, time_key, seq = after
    return {
        **asked_by(request),
        "now": now,
        "look": look,
        "prio_key": prio_key,
        "time_key": time_key,
        "seq": seq,
        "sublane": single.sublane,
        "control": single.control,
        "format": RECORD_FORMAT,
        "limit": request.limit,
        "slots": request.slots,
        "first_ticket": request.first_ticket,
        "take_back_until": request.take_back_until,
        "lease_us": request.types[single.lane.type],
        "tenant": single.lane.tenant,
        "type": single.lane.type,
        "queue": single.lane.queue,
        "of_lane": _in_record(single.lane),
        "own_lease": OWN_LEASE,
        "epoch_shift": EPOCH_SHIFT,
    }


def _in_record(lane: LaneName) -> str:
    """What follows the id in every record of the lane."""
    known = {**lane._asdict(), **AS_READY}
    return msgspec.json.encode([known[name] for name in SHARED_IN_LANE])[1:-1].decode()
