"""Gives dead-lettered jobs another chance while this worker has nothing else to do: some at a time, a few times each.

Several may do it at once: the store revives a job only in the run that was looked at, so the second one does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct, structs

from ropewalk.definitions import checks
from ropewalk.definitions.jobtype import JobType
from ropewalk.domain.instants import SECOND, Instant, Seconds, to_span
from ropewalk.domain.job import DEFAULT_TENANT, JobRecord
from ropewalk.domain.operator import RetryStatus, Revival
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.states import State
from ropewalk.engine.services.periodic import every
from ropewalk.engine.workbench import Workbench
from ropewalk.ports.notifier import Hint

REASON: Final = "redriven"
PAGE_MAX: Final = 500
PAGES_MAX: Final = 20
"""of dead-lettered jobs looked through in one round: the next one goes on there"""


class Redrive(Struct, frozen=True, kw_only=True):
    """`app.worker(redrive=Redrive(types=[charge], batch=20, every=60))`.

    types: whose dead-lettered jobs come back, as fresh work: attempts, crashes, checkpoint and error are forgotten.
    batch: how many at a time. every: how often, on average; only while the worker is idle.
    max_times: a job comes back while its run, which counts manual retries too, is not over this.
    older_than: how long it must lie there first.
    tenants: whose; None is those of the worker, and for one that serves all, the default tenant.
    """

    types: Sequence[JobType[..., Any, Any] | str]
    batch: int = 10
    every: Seconds = 60.0
    max_times: int = 3
    older_than: Seconds = 0.0
    tenants: Sequence[str] | None = None

    def __post_init__(self) -> None:
        checks.positive(self.batch, "batch")
        checks.positive(self.max_times, "max_times")
        checks.positive_span(self.every, "every")
        to_span(self.older_than, "older_than")
        for field, given in (("types", self.types), ("tenants", self.tenants)):
            checks.some(given, field)

    def names(self) -> tuple[str, ...]:
        return tuple(each if isinstance(each, str) else each.name for each in self.types)


class Redriver:
    def __init__(
        self,
        bench: Workbench,
        config: Redrive,
        idle: Callable[[], bool],
        tenants: Sequence[str] | None = None,
    ) -> None:
        self._bench = bench
        self._config = config
        self._idle = idle
        self._tenants = config.tenants or tenants or (DEFAULT_TENANT,)
        self._wanted = Filter(types=config.names(), states=(State.DEAD_LETTER,))
        self._cursors: dict[str, str | None] = {}
        """tenant → where the last look ended; those that are used up are not looked through every time"""

    async def run(self) -> None:
        await every(to_span(self._config.every, "every") / SECOND, self.run_once, self._bench.runtime)

    async def run_once(self) -> bool:
        """Never more than one batch: what came back is to be done first."""
        left = self._config.batch
        for tenant in self._tenants:
            if left and self._idle():
                left -= await self._revive(tenant, await self._find(tenant, left))
        return False

    async def _find(self, tenant: str, limit: int) -> list[JobRecord]:
        found: list[JobRecord] = []
        for _ in range(PAGES_MAX):
            page = await self._bench.store.search(
                tenant,
                self._wanted,
                order=Order.CREATED_ASC,
                cursor=self._cursors.get(tenant),
                limit=min(limit - len(found), PAGE_MAX),
            )
            found.extend(job for job in page.jobs if self._is_due(job, page.now))
            self._cursors[tenant] = page.next_cursor
            if page.next_cursor is None or len(found) >= limit:
                break
        return found

    def _is_due(self, job: JobRecord, now: Instant) -> bool:
        lies_since = job.finished_at or job.updated_at
        return job.run <= self._config.max_times and lies_since + to_span(self._config.older_than, "older_than") <= now

    async def _revive(self, tenant: str, jobs: list[JobRecord]) -> int:
        """How many came back."""
        back: list[JobRecord] = []
        by_run = attrgetter("run")
        for run, alike in groupby(sorted(jobs, key=by_run), key=by_run):
            some = {job.id: job for job in alike}
            asked = Revival(fresh=True, of_run=run, reason=REASON)
            answers = await self._bench.store.revive(tenant, list(some), asked)
            back.extend(some[answer.id] for answer in answers if answer.status is RetryStatus.QUEUED)
        self._tell(back)
        return len(back)

    def _tell(self, jobs: list[JobRecord]) -> None:
        bench = self._bench
        for job in jobs:
            bench.events.tell(structs.replace(job, attempt=0), "queued", message=REASON)
        if jobs:
            bench.store.notifier.publish(Hint(ready=tuple({job.queue for job in jobs})))
