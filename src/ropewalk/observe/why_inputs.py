"""The facts from which `why` explains that a job is not running: its parents, a pause, limits, live workers that serve
it, and the jobs before it.

They include what the card of a worker says: whether the worker is alive, and which jobs it serves.
"""

from __future__ import annotations

from typing import Final

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import Instant
from ropewalk.domain.why import WhyInputs
from ropewalk.ports.store.capabilities import DIAGNOSIS, LIMITS, WORKFLOWS
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.leases import WorkerCard


def is_alive(card: WorkerCard, now: Instant) -> bool:
    """Whether the worker has renewed its leases within the length of a lease; otherwise it counts as dead."""
    return card.beat_at + card.lease_us > now


def serves(card: WorkerCard, lane: LaneName) -> bool:
    """Whether the worker claims jobs of this lane: it serves their type, their queue and their tenant, and does not
    drain."""
    return (
        not card.draining
        and lane.type in card.types
        and (card.queues is None or lane.queue in card.queues)
        and (card.tenants is None or lane.tenant in card.tenants)
    )


NAMED_MAX: Final = 3
"""An explanation names this many parents at most."""


async def why_inputs(store: Store, job: JobRecord, now: Instant) -> WhyInputs:
    """Reads the facts about a job, and only those that its explanation needs."""
    diagnosis, bounds = DIAGNOSIS.if_declared(store), LIMITS.if_declared(store)
    if not job.terminal and diagnosis is not None and (damaged := await diagnosis.damage_of(job)):
        return WhyInputs(paused=False, served=True, ahead=0, damaged=tuple(damaged))
    if job.unmet and job.awaits is None:
        waits_for = [edge.parent_id for edge in await WORKFLOWS.of(store).edges([job.seq]) if edge.ending is None]
        return WhyInputs(paused=False, served=True, ahead=0, waits_for=tuple(waits_for[:NAMED_MAX]))
    if not job.ready_at(now):
        return WhyInputs(paused=False, served=True, ahead=0)
    paused = any(queue.paused for queue in await store.queues(job.tenant) if queue.name == job.queue)
    serving = [card for card in await store.workers() if is_alive(card, now) and serves(card, job.lane)]
    free = sum(card.held < card.concurrency for card in serving)
    ahead = None if diagnosis is None else await diagnosis.ahead_of(job)
    full = () if bounds is None else tuple(await bounds.full_limits_for(job))
    return WhyInputs(paused=paused, served=bool(serving), ahead=ahead, free=free, full=full)
