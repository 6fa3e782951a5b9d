"""Statistics: what happened in a stretch of time, and how many jobs stand where."""

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


class StatisticsOperations(TenantOperations):
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
        """Counts, rates and latencies of the time before `until` (now), and how many jobs are in each state now.

        Told apart `by` type, queue or both, and along a time line of about so many `slices`. The cost does not depend
        on how many jobs there are or were.

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
