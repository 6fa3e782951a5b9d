"""The redriver begins the next run of dead letters while this worker has nothing else to do: a batch at a time, and
each job only a few times.

Several workers may do it at once: the request names the run that the worker saw, and the store refuses it if another
worker has begun the next run. Tenants take turns: a round begins behind the tenant with which the last round ended, so
that no tenant has to wait until another one has no dead letters left.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct, structs

from ropewalk.definitions.job_types.job_type import JobType, type_name
from ropewalk.domain import checks
from ropewalk.domain.jobs.operations import RetryRequest, RetryStatus
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import State, Status
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import SECOND, Instant, Seconds, to_span
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.capabilities import STATISTICS
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.services.maintenance import every
from ropewalk.worker.services.one_by_one import together_or_alone

REASON: Final = "redriven"
"""The reason in the history of a job that was redriven."""
PAGE_MAX: Final = 500
"""One search reads this many dead letters at most."""
PAGES_MAX: Final = 20
"""One round looks through this many pages of dead letters of all tenants together; the next round goes on behind
them."""


class Redrive(Struct, frozen=True, kw_only=True):
    """`app.worker(redrive=Redrive(types=[charge], batch=20, every=60))`.

    types: the job types whose dead letters run again as fresh jobs: attempts, crashes, checkpoint and error are
    forgotten. batch: the number of jobs in one round. every: the average seconds between rounds, which happen only
    while the worker is idle. max_times: a job runs again as long as its run, which counts manual retries, too, is not
    above this number. older_than: the seconds for which a job must have been a dead letter. tenants: the tenants of the
    jobs; None means those of the worker, or all if it serves all. They take turns.
    """

    types: JobType[..., Any, Any] | str | Sequence[JobType[..., Any, Any] | str]
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
        if (types := checks.some_or_none(self.types, "types", type_name)) is None:
            raise checks.wrong("types", None, "job types or their names")
        structs.force_setattr(self, "types", types)
        structs.force_setattr(self, "tenants", checks.some_or_none(self.tenants, "tenants", checks.text))

    def names(self) -> tuple[str, ...]:
        return checks.several(self.types, "types", type_name)


class Redriver:
    """The service that redrives dead letters."""

    def __init__(
        self,
        worker_context: WorkerContext,
        config: Redrive,
        idle: Callable[[], bool],
        tenants: Sequence[str] | None = None,
    ) -> None:
        self._worker_context = worker_context
        self._config = config
        self._idle = idle
        self._tenants = config.tenants or tenants
        """The tenants whose jobs run again; None means all that have dead letters."""
        self._last = ""
        """The tenant whose turn came last."""
        self._wanted = Filter(types=config.names(), states=(State.DEAD_LETTER,))
        self._cursors: dict[str, str | None] = {}
        """The place in the dead letters of each tenant where the last round ended, so that jobs which have used up
        their runs are not looked through every time."""

    async def run(self) -> None:
        await every(to_span(self._config.every, "every") / SECOND, self.run_once, self._worker_context.runtime)

    async def run_once(self) -> bool:
        """Redrives at most one batch: the worker should run these jobs before the next ones."""
        found: dict[str, list[JobRecord]] = {}
        left, pages = self._config.batch, PAGES_MAX
        for tenant in await self._in_turn() if self._idle() else ():
            if not (left and pages and self._idle()):
                break
            found[tenant], looked = await self._find(tenant, left, pages)
            left -= len(found[tenant])
            pages -= looked
            self._last = tenant
        for tenant, jobs in found.items():  # The search is over by now: this worker is not idle after the first retry.
            await self._retry(tenant, jobs)
        return False

    async def _in_turn(self) -> list[str]:
        """Returns the tenants whose jobs may run again, beginning behind the one whose turn came last."""
        whose = self._tenants or await STATISTICS.of(self._worker_context.store).tenants_with(
            Status.DEAD_LETTER, self._config.names()
        )
        names = sorted(set(whose))
        self._cursors = {name: self._cursors[name] for name in names if name in self._cursors}
        behind = bisect_right(names, self._last)
        return [*names[behind:], *names[:behind]]

    async def _find(self, tenant: str, limit: int, pages: int) -> tuple[list[JobRecord], int]:
        """Returns dead letters of a tenant that may run again, and the number of pages that were read to find them."""
        found: list[JobRecord] = []
        for looked in range(1, pages + 1):
            page = await self._worker_context.store.search(
                tenant,
                self._wanted,
                order=Order.CREATED_ASC,
                cursor=self._cursors.get(tenant),
                limit=min(limit - len(found), PAGE_MAX),
            )
            found.extend(job for job in page.jobs if self._is_due(job, page.now))
            self._cursors[tenant] = page.next_cursor
            if page.next_cursor is None or len(found) >= limit:
                return found, looked
        return found, pages

    def _is_due(self, job: JobRecord, now: Instant) -> bool:
        lies_since = job.finished_at or job.updated_at
        return job.run <= self._config.max_times and lies_since + to_span(self._config.older_than, "older_than") <= now

    async def _retry(self, tenant: str, jobs: list[JobRecord]) -> None:
        back: list[JobRecord] = []
        by_run = attrgetter("run")
        for run, alike in groupby(sorted(jobs, key=by_run), key=by_run):
            some = {job.id: job for job in alike}
            retry = partial(
                self._worker_context.store.retry, tenant, request=RetryRequest(fresh=True, of_run=run, reason=REASON)
            )
            for answers in await together_or_alone(list(some), retry, self._failed):
                back.extend(some[answer.id] for answer in answers if answer.status is RetryStatus.QUEUED)
        self._publish(back)

    def _failed(self, job_id: str, error: Exception) -> None:
        """Reports a job whose retry failed: it stays a dead letter, and the others run again."""
        self._worker_context.events.report(error, f"redrive of job {job_id}")

    def _publish(self, jobs: list[JobRecord]) -> None:
        worker_context = self._worker_context
        for job in jobs:
            worker_context.events.emit_about(structs.replace(job, attempt=0), "queued", message=REASON)
        if jobs:
            worker_context.store.notifier.publish(Hint(ready=tuple({job.queue for job in jobs})))
