"""Capability: fleet-wide limits on what runs and starts.

What holds for every verb of a store (core.py) holds here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.limits.fleet_limit import FlowLimit, LimitKind, Measure
from ropewalk.domain.limits.headroom import FullLimit


class LimitUse(Struct, frozen=True, kw_only=True):
    """A limit, and what runs under it now."""

    limit: FlowLimit
    in_use: int
    keys: dict[str, int] = {}
    """of a family: in use by key, each of which has the whole limit to itself"""

    @classmethod
    def of(cls, limit: FlowLimit, in_use: Mapping[Measure, int]) -> LimitUse:
        mine = {measure.name: number for measure, number in in_use.items() if measure.limit == limit.id}
        return cls(limit=limit, in_use=sum(mine.values()), keys=mine if limit.for_each else {})


class LimitStore(Protocol):
    """Fleet-wide limits on what runs and starts (domain.limits.fleet_limit), which hold from the next claim on."""

    async def put_limit(self, limit: FlowLimit) -> None:
        """Make or replace it (FlowLimit.replaces). What its rate has used is kept where window and algorithm stay the
        same."""
        ...

    async def remove_limit(self, tenant: str, kind: LimitKind, name: str) -> bool:
        """False: there was none."""
        ...

    async def limits(self, tenant: str) -> list[LimitUse]:
        """By kind and name. EVERY_TENANT: those for all together."""
        ...

    async def full_limits_for(self, job: JobRecord) -> list[FullLimit]:
        """The limits that leave no room for this job now."""
        ...
