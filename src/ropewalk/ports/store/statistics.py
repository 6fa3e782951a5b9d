"""Capability: statistics as a store keeps them. Part of the storage port (core.py), whose common rules hold here, too.

Whatever moves a job counts it in the same transaction (domain.statistics.counters): it is counted once, or did not
happen. Counting makes nobody wait: no row is written by two who move jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ropewalk.domain.jobs.states import Status
from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.statistics.statistics import Statistics
from ropewalk.domain.time import Span


class StatisticsStore(Protocol):
    """Counts of what happened, added up."""

    async def stats(self, tenant: str, query: StatsQuery) -> Statistics:
        """domain.statistics.aggregation.aggregate over what was counted. Its cost does not depend on how many jobs are
        finished, nor on how many are ready."""
        ...

    async def tenants_with(self, ended: Status, types: Sequence[str]) -> list[str]:
        """Those that have jobs of these types which ended so and are still there, by name: the one look across tenants
        for whoever serves all of them. Its cost does not depend on how many jobs there are, as that of `stats`."""
        ...

    async def fold_counters(self, keep_us: Span | None, limit: int) -> int:
        """Fold up to `limit` counters that nobody else is folding (domain.statistics.counters.fold); answers how many.

        Forgets minutes older than a day and hours older than `keep_us` (None: none), up to `limit` of each. What is
        added up for good stays. As far as `stats` reaches, no answer of it is changed.
        """
        ...
