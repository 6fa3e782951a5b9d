"""Statistics: what happened in a stretch of time, and how many jobs stand where."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, get_args

from ropewalk.client.operations.base import Bound
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.domain.statistics.aggregation import By, StatsQuery
from ropewalk.domain.statistics.statistics import Statistics
from ropewalk.domain.time import Seconds, to_instant, to_span
from ropewalk.errors import InvalidInput

SLICES_MAX: Final = 1000


class Counting(Bound):
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
        if by not in get_args(By):
            raise InvalidInput(f"by={by!r} must be one of {', '.join(map(repr, get_args(By)))}", field="by")
        if isinstance(slices, bool) or not isinstance(slices, int) or not 1 <= slices <= SLICES_MAX:
            raise InvalidInput(f"slices={slices!r} must be a whole number from 1 to {SLICES_MAX:,}", field="slices")
        last_us = to_span(last, "last")
        if last_us == 0:
            raise InvalidInput(f"last={last!r} is no time at all: give some seconds or a timedelta", field="last")
        asked = StatsQuery(
            last_us=last_us,
            until=None if until is None else to_instant(until, "until"),
            by=by,
            queue=queue,
            type=type.name if isinstance(type, JobType) else type,
            slices=slices,
        )
        return await (await self._store()).stats(self._tenant, asked)
