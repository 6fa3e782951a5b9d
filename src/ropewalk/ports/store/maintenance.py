"""The part of the core that every worker calls now and then on behalf of all.

The rules for every verb are in core.py.
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
    """The verbs that every worker calls now and then on behalf of all."""

    async def sweep(self, limit: int, *, take_back_until: Instant | None = None) -> Consequences:
        """Takes back expired leases, expires waiting jobs whose deadline has passed, and ends waits that are over
        (domain.workflow.gate.wait_is_over): up to `limit` of each. The answer contains all consequences.

        Leases are taken back only until `take_back_until` (domain.jobs.lease.may_take_back), with
        domain.jobs.transition.lose. A job had started if its owner is unknown or StartedTickets.covers says so.
        A lease that is renewed or settled meanwhile stays, because the statement that takes leases back checks them.
        """
        ...

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        """Deletes up to `limit` finished jobs whose retention is over, old results, closed keys whose window is over,
        expired once-keys, and the cards of workers that have been silent for a day."""
        ...

    async def once(self, tenant: str, key: str, ttl_us: Span, *, by: str | None = None) -> bool:
        """Returns True for the first caller with this key, until `ttl_us` has passed.

        If the first caller repeats the call with the same `by`, because it did not get the answer, the answer is True
        again.
        """
        ...
