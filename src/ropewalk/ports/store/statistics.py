"""The capability to keep statistics. The rules for every verb are in core.py.

Every transaction that moves jobs also counts them (domain.statistics.counters), so that a move that was committed is
counted exactly once. Counting makes nobody wait, because no two transactions that move jobs write the same row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ropewalk.domain.jobs.states import Status
from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.statistics.statistics import Statistics
from ropewalk.domain.time import Span


class StatisticsStore(Protocol):
    """A store that counts what happens to jobs."""

    async def stats(self, tenant: str, query: StatsQuery) -> Statistics:
        """Applies domain.statistics.aggregation.aggregate to what was counted. The cost does not depend on how many
        jobs are finished or ready."""
        ...

    async def tenants_with(self, ended: Status, types: Sequence[str]) -> list[str]:
        """Returns the tenants that still have jobs of these types which ended with this status, by name. A worker that
        serves all tenants needs it. As with `stats`, the cost does not depend on the number of jobs."""
        ...

    async def fold_counters(self, keep_us: Span | None, limit: int) -> int:
        """Folds up to `limit` counters that nobody else is folding (domain.statistics.counters.fold), and returns how
        many it folded.

        Then deletes up to `limit` sums of minutes that are older than a day, and of hours that are older than `keep_us`
        (None keeps all). The sums for all time stay. No answer of `stats` changes for a time that it still covers.
        """
        ...
