"""Looking at workers and draining them, and examining the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from ropewalk.domain.time import Instant
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import not_found
from ropewalk.http.identity.identity import EVERY_TENANT, Role
from ropewalk.http.jobs.lookup import refuse_bounded
from ropewalk.http.routing import Routes
from ropewalk.http.wire import iso_duration, timestamp
from ropewalk.observe.why_inputs import is_alive
from ropewalk.ports.store.leases import WorkerCard

routes = Routes("workers")


class WorkerInfo(Struct, frozen=True, kw_only=True):
    worker_id: str
    host: str | None
    """None for an identity of one tenant, which does not see the machines of a fleet."""
    pid: int | None
    types: Sequence[str]
    queues: Sequence[str] | None
    """The queues that it serves. None for all of them."""
    tenants: Sequence[str] | None
    """The tenants that it serves, as far as the identity may know. None for all of them."""
    concurrency: int
    held: int | None
    """How many leases it holds. None for an identity of one tenant, if the worker serves others, too."""
    lease: str
    started_at: datetime
    last_seen_at: datetime
    alive: bool
    draining: bool


class Workers(Struct, frozen=True, kw_only=True):
    workers: Sequence[WorkerInfo]


class FindingInfo(Struct, frozen=True, kw_only=True):
    level: str
    subject: str
    found: str
    advice: str | None


class Examination(Struct, frozen=True, kw_only=True):
    findings: Sequence[FindingInfo]


class DoctorQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    deep: bool = False
    """Also look at what takes long, such as every page of a SQLite file."""


@routes.get("/workers", role=Role.READ)
async def list_workers(call: Call[None, NoQuery]) -> Workers:
    """List the workers that serve the tenant."""
    now = await call.store.clock()
    return Workers(workers=[_info(call, card, now) for card in await call.store.workers() if _serves(call, card)])


@routes.get("/workers/{id}", role=Role.READ)
async def get_worker(call: Call[None, NoQuery]) -> WorkerInfo:
    """Look at a worker."""
    return _info(call, await _find(call), await call.store.clock())


@routes.post("/workers/{id}/drain", role=Role.OPERATE)
async def drain_worker(call: Call[None, NoQuery]) -> WorkerInfo:
    """Tell a worker to stop: it finishes what runs and gives the rest back.

    An identity of one tenant can drain only workers that serve this tenant alone.
    """
    refuse_bounded(call)
    card = await _find(call)
    if call.identity.tenant != EVERY_TENANT and card.tenants != (call.tenant,):
        raise not_found()
    await call.client.drain_worker(card.id)
    return _info(call, await _find(call), await call.store.clock())


@routes.get("/doctor", role=Role.ADMIN, every_tenant=True)
async def examine(call: Call[None, DoctorQuery]) -> Examination:
    """Examine the store, its workers and the jobs of all tenants, and say what to do. Changes nothing."""
    found = await call.service.app.examine(deep=call.query.deep)
    return Examination(
        findings=[
            FindingInfo(level=each.level.name, subject=each.subject, found=each.found, advice=each.advice)
            for each in found
        ]
    )


async def _find(call: Call[Any, Any]) -> WorkerCard:
    for card in await call.store.workers():
        if card.id == call.id and _serves(call, card):
            return card
    raise not_found()


def _serves(call: Call[Any, Any], card: WorkerCard) -> bool:
    """Whether it serves the tenant of the call, and what of it the identity reaches."""
    reached = call.identity
    return (
        (card.tenants is None or call.tenant in card.tenants)
        and (reached.types is None or not reached.types.isdisjoint(card.types))
        and (reached.queues is None or card.queues is None or not reached.queues.isdisjoint(card.queues))
    )


def _info(call: Call[Any, Any], card: WorkerCard, now: Instant) -> WorkerInfo:
    everything = call.identity.tenant == EVERY_TENANT
    alone = card.tenants == (call.tenant,)
    reached = call.identity.types
    return WorkerInfo(
        worker_id=card.id,
        host=card.host if everything else None,
        pid=card.pid if everything else None,
        types=[each for each in card.types if reached is None or each in reached],
        queues=card.queues,
        tenants=card.tenants if everything else None if card.tenants is None else [call.tenant],
        concurrency=card.concurrency,
        held=card.held if everything or alone else None,
        lease=iso_duration(card.lease_us),
        started_at=timestamp(card.started_at),
        last_seen_at=timestamp(card.beat_at),
        alive=is_alive(card, now),
        draining=card.draining,
    )
