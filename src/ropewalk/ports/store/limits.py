"""The capability to limit, for the whole fleet, what runs and starts.

The rules for every verb are in core.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.limits.fleet_limit import FlowLimit, LimitKind, Measure
from ropewalk.domain.limits.headroom import FullLimit


class LimitUse(Struct, frozen=True, kw_only=True):
    """A limit, and how much of it is in use now."""

    limit: FlowLimit
    in_use: int
    """The number of running jobs that count against the limit; of a family, those of all its keys."""
    keys: dict[str, int] = {}
    """For a family: how many jobs of each key run. The limit applies to each key separately."""

    @classmethod
    def of(cls, limit: FlowLimit, in_use: Mapping[Measure, int]) -> LimitUse:
        mine = {measure.name: number for measure, number in in_use.items() if measure.limit == limit.id}
        return cls(limit=limit, in_use=sum(mine.values()), keys=mine if limit.for_each else {})


class LimitStore(Protocol):
    """A store with limits of the fleet (domain.limits.fleet_limit). A change applies from the next claim on."""

    async def put_limit(self, limit: FlowLimit) -> None:
        """Sets a limit, or replaces it if FlowLimit.replaces allows it. If window and algorithm of its rate stay the
        same, the state of the rate is kept."""
        ...

    async def remove_limit(self, tenant: str, kind: LimitKind, name: str) -> bool:
        """Removes a limit. Returns False if there was none."""
        ...

    async def limits(self, tenant: str) -> list[LimitUse]:
        """Returns the limits of a tenant by kind and name; for EVERY_TENANT, those of all tenants together."""
        ...

    async def full_limits_for(self, job: JobRecord) -> list[FullLimit]:
        """Returns the limits that leave no room for this job now."""
        ...
