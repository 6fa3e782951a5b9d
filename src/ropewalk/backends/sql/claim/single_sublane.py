"""The fast path of a claim: one statement leases the jobs if all ready jobs are in a single sublane. This is the usual
case for most workers.

The last claim found a single sublane, and no rule kept any of its jobs back. If this is still true, which the statement
checks itself, it leases the first jobs, as claim.py would, and the transaction ends with it. If anything has changed,
the statement leases nothing, and claim.py goes on: another sublane has ready jobs, a job is due, it is time to search
for expired leases, a limit was set, a queue was paused, or one of the jobs is past its deadline, may not wait in a
buffer, or has a lease of its own length.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from ropewalk.backends.sql.claim.cache import BEFORE_ALL, ClaimCache, Rank, SingleSublane
from ropewalk.backends.sql.claim.snapshot import ClaimSnapshot, NamesOf, claim_values, rank_of
from ropewalk.backends.sql.columns import AS_READY, SHARED_IN_LANE
from ropewalk.backends.sql.damage import ids_of
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.maintenance import set_aside
from ropewalk.backends.sql.records import load, records_of
from ropewalk.backends.sql.tx import SqlValue, Tx
from ropewalk.domain.jobs.flags import OWN_LEASE
from ropewalk.domain.jobs.record import RECORD_FORMAT, JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.jobs.transition import EPOCH_SHIFT, claim_all
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import Instant
from ropewalk.ports.store.claims import Claimed, ClaimRequest


class FastClaim(NamedTuple):
    """A fast claim that was sent to the store."""

    single: SingleSublane
    look: bool
    values: dict[str, SqlValue]


def claim_single_sublane(tx: Tx, lanes: LaneBook, cache: ClaimCache, request: ClaimRequest) -> Claimed | None:
    """Tries to claim by one statement. Returns None if that is not possible, so that claim.py has to go on."""
    prepared = None if tx.careful else prepare(cache, request, tx.known_now)
    if prepared is None:
        return None
    found = tx.row_and_commit(tx.sql.claim_single_sublane, prepared.values)
    return read_answer(found, prepared, cache, request, lambda dues: lanes.names_of(tx, dues))


def prepare(cache: ClaimCache, request: ClaimRequest, now: Instant | None) -> FastClaim | None:
    """Returns the values for the statement if this claim can use it; None otherwise. If `now` is None, the statement
    uses the store's clock."""
    single = cache.single
    if single is None or not _suits(single, request):
        return None
    look = cache.sublanes is None
    after = BEFORE_ALL if look else cache.start_of(single.sublane)
    values = _values(single, request, now, look=look, after=after)
    values["sweep_from"], values["sweep_by"] = cache.no_sweep_between
    return FastClaim(single, look, values)


def read_answer(
    found: Sequence[Any] | None, prepared: FastClaim, cache: ClaimCache, request: ClaimRequest, names: NamesOf
) -> Claimed | None:
    """Makes the answer of the claim from the row of the statement; None if the statement leased nothing because
    something has changed since the last claim."""
    assert found is not None
    now, as_expected, *rest = found
    if not as_expected:
        cache.single = None
        return None
    *situated, contradicted = rest[:7]
    snapshot, jobs = ClaimSnapshot(situated, request, now), _records(rest[7:], contradicted=contradicted)
    epoch, first_ticket = snapshot.epoch, request.first_ticket
    claim_all(jobs, request.owner, first_ticket=first_ticket, epoch=epoch, leases=request.types, now=now)
    if prepared.look:
        cache.looked(*snapshot.decoded_ready())
    if jobs:
        cache.granted(now + request.types[prepared.single.lane.type])
        cache.reached(prepared.single.sublane, rank_of(jobs[-1]))
    times = (snapshot.next_ready(names), snapshot.next_wait)
    return Claimed(now=now, jobs=jobs, moved=[], next_due=min(filter(None, times), default=None))


class LeasedUnread(Exception):
    """The statement leased these jobs and its transaction has ended, but the row of one of them cannot be decoded or
    contradicts its lane."""

    def __init__(self, seqs: frozenset[int]) -> None:
        super().__init__(f"the rows of {len(seqs)} leased jobs cannot be read")
        self.seqs = seqs


def read_leased(tx: Tx, lanes: LaneBook, unread: LeasedUnread) -> Claimed:
    """Reads the leased jobs carefully in another transaction. Sets the damaged ones aside and returns the others as the
    answer of the claim."""
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
        and not request.ignored
        and not request.unanswered
    )


def _values(
    single: SingleSublane, request: ClaimRequest, now: Instant | None, *, look: bool, after: Rank
) -> dict[str, SqlValue]:
    prio_key, time_key, seq = after
    return {
        **claim_values(request),
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
    """Returns the text that follows the id in the stored record of every ready job of the lane."""
    known = {**lane._asdict(), **AS_READY}
    return msgspec.json.encode([known[name] for name in SHARED_IN_LANE])[1:-1].decode()
