"""Statistics say what happened in a span of time, and how many jobs are in each state."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, get_args

from ropewalk.client.operations.base import TenantOperations
from ropewalk.definitions.job_types.job_type import JobType, type_name
from ropewalk.domain import checks
from ropewalk.domain.statistics.aggregation import By, StatsQuery
from ropewalk.domain.statistics.statistics import Statistics
from ropewalk.domain.time import Seconds, to_instant
from ropewalk.ports.store.capabilities import STATISTICS

SLICES_MAX: Final = 1000
"""A time line has this many slices at most."""


class StatisticsOperations(TenantOperations):
    """Reads the statistics of a tenant."""

    async def stats(
        self,
        *,
        last: Seconds = 3600,
        until: datetime | None = None,
        by: By = "type",
        queue: str | None = None,
        type: JobType[..., Any, Any] | str | None = None,  # noqa: A002 # as everywhere
        slices: int = 60,
    ) -> Statistics:
        """Return counts, rates and latencies of the time before `until` (None means now), and how many jobs are in each
        state now.

        The numbers are given `by` type, queue or both, and along a time line of about this many `slices`. The cost does
        not depend on how many jobs there are or were.

        >>> stats = await app.stats(last=timedelta(hours=24), by="queue")
        >>> stats.flow.completed, stats.finished_per_second, stats.flow.run.p95_us
        """
        query = StatsQuery(
            last_us=checks.positive_span(last, "last"),
            until=None if until is None else to_instant(until, "until"),
            by=checks.choice(by, "by", get_args(By)),
            queue=checks.text_or_none(queue, "queue"),
            type=None if type is None else type_name(type, "type"),
            slices=checks.between(slices, "slices", 1, SLICES_MAX),
        )
        return await STATISTICS.of(await self._store()).stats(self._tenant, query)
