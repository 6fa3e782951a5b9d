"""Capability: fleet-wide limits on what runs and starts.

What holds for every verb of a store (core.py) holds here.
"""

from __future__ import annotations

from typing import Protocol

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.limits.fleet_limit import FlowLimit, LimitKind
from ropewalk.domain.limits.headroom import Full
from ropewalk.ports.store.messages import LimitUse


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

    async def held_by(self, job: JobRecord) -> list[Full]:
        """The limits that leave no room for this job now."""
        ...
