"""Part of the core: what every worker does now and then for all.

What holds for every verb of a store (core.py) holds here.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from ropewalk.domain.retention import Retention
from ropewalk.domain.time import Instant, Span
from ropewalk.ports.store.consequences import Consequences


class Pruned(Struct, frozen=True, kw_only=True):
    """How many jobs were deleted, and how many results and keys were forgotten."""

    jobs: int
    results: int
    keys: int


class Maintaining(Protocol):
    """What every worker does now and then for all."""

    async def sweep(self, limit: int, *, take_back_until: Instant | None = None) -> Consequences:
        """Take back up to `limit` expired leases, if it is not too late for that (domain.jobs.lease.may_take_back;
        domain.jobs.transition.lose: `started` is ticket <= the owner's started_upto and not among its unstarted, or the
        owner is unknown), expire up to `limit` waiting jobs past their deadline, and end up to `limit` waits that are
        over (domain.workflow.gate.wait_is_over). What follows from it is in the answer, too.

        The decision and the write are one: a lease renewed or settled meanwhile is left alone.
        """
        ...

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        """Delete up to `limit` finished jobs past retention, forget old results, closed keys out of their window,
        expired once-keys, and cards of workers silent for a day."""
        ...

    async def once(self, tenant: str, key: str, ttl_us: Span, *, by: str | None = None) -> bool:
        """True for the first caller of this key until ttl_us has passed.

        A caller who was first and asks again as the same `by`, since the answer was lost, is answered True again.
        """
        ...
