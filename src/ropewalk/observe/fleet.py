"""What a worker's card says to others: whether it is alive, and what it takes."""

from __future__ import annotations

from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import Instant
from ropewalk.ports.store.messages import WorkerCard


def is_alive(card: WorkerCard, now: Instant) -> bool:
    """One that has not given a sign for a whole lease is taken for dead."""
    return card.beat_at + card.lease_us > now


def serves(card: WorkerCard, lane: LaneName) -> bool:
    """Whether jobs of this lane are for it: of a type it registered, in a queue and of a tenant it was started for."""
    return (
        not card.draining
        and lane.type in card.types
        and (card.queues is None or lane.queue in card.queues)
        and (card.tenants is None or lane.tenant in card.tenants)
    )
