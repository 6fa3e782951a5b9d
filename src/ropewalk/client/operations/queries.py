"""Queries read jobs, queues and events, and change nothing. The waits are for handles; users wait with a Handle or with
`wait`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, get_args

from ropewalk.client.filter import Filter, failed_ones, in_domain
from ropewalk.client.operations.base import BATCH, TenantOperations, missing
from ropewalk.client.views.answers import FailureCounts, LogInfo, SearchPage
from ropewalk.client.views.jobs import FailureInfo, HistoryInfo, Included, JobInfo
from ropewalk.client.views.workflows import edge_info, group_value
from ropewalk.definitions.results.group_values import check_group
from ropewalk.domain import checks
from ropewalk.domain.jobs.flags import CHAINED
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import State, Status
from ropewalk.domain.search import Order
from ropewalk.domain.time import Seconds, to_datetime
from ropewalk.domain.why import Why, explain
from ropewalk.observe.events import Event
from ropewalk.observe.why_inputs import why_inputs
from ropewalk.ports.store.capabilities import LOGS, WORKFLOWS
from ropewalk.ports.store.reading import QueueInfo, StoredHistory


class QueryOperations(TenantOperations):
    """Reads the jobs of a tenant."""

    async def get(self, job_id: str, *, include: Included | Iterable[Included] = ()) -> JobInfo:
        """Return one job. `include` names what else is read: its history, failed attempts, log lines, dependencies, and
        why it is not running. Arguments and result are always included.

        >>> info = await app.get(handle.id, include=["history", "logs"])
        """
        included = checks.several(include, "include", lambda each, name: checks.choice(each, name, get_args(Included)))
        stored = None
        if "history" in included or "attempts" in included:  # They are read at the same moment as the job.
            stored = await self._stored_history(job_id)
            job, now = stored.job, stored.now
        else:
            job, now = await self._record(job_id)
        found: dict[str, Any] = {}
        if stored is not None and "history" in included:
            found["history"] = tuple(self._describe.history(stored))
        if stored is not None and "attempts" in included:
            found["attempts"] = self._describe.failure(stored, all_attempts=True).attempts
        store = self._app_state.store
        if "logs" in included:
            found["logs"] = tuple(LogInfo.of(line) for line in await LOGS.of(store).log(self._tenant, job_id))
        if "dependencies" in included:
            edges = await WORKFLOWS.of(store).edges([job.seq])
            found["dependencies"] = tuple(edge_info(edge, job.id) for edge in edges)
        if "why" in included:
            found["why"] = explain(job, await why_inputs(store, job, now), now)
        return replace(self._describe.job(job, now), **found)

    async def states(self, ids: Iterable[str]) -> dict[str, State]:
        """Return the states of the jobs that exist, by id."""
        wanted = checks.names(ids, "ids")
        read = await (await self._store()).get(self._tenant, wanted)
        return {job_id: job.state_at(read.now) for job_id, job in read.jobs.items()}

    async def wait(self, job_id: str, timeout: Seconds | None = None) -> JobInfo:  # noqa: ASYNC109 # fixed API
        """Wait until the job has ended, however it ended, and return it. Raises NotFound and WaitTimeout."""
        checks.text(job_id, "job_id")
        timeout_seconds = checks.timeout(timeout)
        session = await self._app_state.session()
        job = await session.jobs.wait(self._tenant, job_id, timeout_seconds)
        return self._describe.job(job, job.updated_at)

    async def search(
        self,
        wanted: Filter | None = None,
        *,
        order: Order = Order.CREATED_DESC,
        cursor: str | None = None,
        limit: int = 100,
    ) -> SearchPage:
        """Return a page of the jobs that match a filter; `next_cursor` of one page is the `cursor` of the next one."""
        checks.between(limit, "limit", 1, 1000)
        checks.text_or_none(cursor, "cursor")
        domain_filter, order = in_domain(wanted), checks.member(order, "order", Order)
        page = await (await self._store()).search(self._tenant, domain_filter, order=order, cursor=cursor, limit=limit)
        return SearchPage([self._describe.job(job, page.now) for job in page.jobs], page.next_cursor)

    async def count(self, wanted: Filter | None = None, *, limit: int | None = None) -> int:
        """Return the number of jobs that match a filter, or `limit` if there are at least so many.

        With a limit the cost does not grow with the number of jobs beyond it.

        >>> found = await app.count(Filter(types="mail"), limit=10_001)    # 10 001 means: more than 10 000
        """
        domain_filter = in_domain(wanted)
        checks.positive_or_none(limit, "limit")
        return await (await self._store()).count(self._tenant, domain_filter, limit=limit)

    async def history(self, job_id: str) -> list[HistoryInfo]:
        """Return everything that happened to the job, without gaps. Raises NotFound."""
        return self._describe.history(await self._stored_history(job_id))

    async def failure(self, job_id: str, *, all_attempts: bool = False) -> FailureInfo:
        """Return how the job failed, with every failed attempt if `all_attempts` is True. Raises NotFound."""
        checks.flag(all_attempts, "all_attempts")
        return self._describe.failure(await self._stored_history(job_id), all_attempts=all_attempts)

    async def failures(
        self, wanted: Filter | None = None, *, cursor: str | None = None, limit: int = 100
    ) -> SearchPage:
        """Return a page of the jobs that failed or wait for a retry, those that changed last first."""
        return await self.search(failed_ones(wanted), order=Order.UPDATED_DESC, cursor=cursor, limit=limit)

    async def failure_counts(self, wanted: Filter | None = None, *, limit: int = 10_000) -> FailureCounts:
        """Count the jobs that failed or wait for a retry, by category, by code (or the name of the exception if there
        is no code) and by type. Only the newest `limit` jobs are counted."""
        checks.positive(limit, "limit")
        counts, cursor = FailureCounts(), None
        while True:
            size = min(BATCH, limit - counts.counted)
            page = await self.search(failed_ones(wanted), order=Order.CREATED_DESC, cursor=cursor, limit=max(1, size))
            for job in page.jobs[:size]:
                counts.add(job)
            cursor = page.next_cursor
            if cursor is None or counts.counted >= limit:
                counts.complete = cursor is None
                return counts

    async def logs(self, job_id: str) -> list[LogInfo]:
        """Return the newest 1 000 lines that the handler logged with `ctx.log` in all attempts, the oldest first."""
        store = LOGS.of(self._app_state.store)
        await self._record(job_id)
        return [LogInfo.of(line) for line in await store.log(self._tenant, job_id)]

    async def why(self, job_id: str) -> Why:
        """Return the one cause why this job is not running, or where it runs. Raises NotFound."""
        job, now = await self._record(job_id)
        return explain(job, await why_inputs(self._app_state.store, job, now), now)

    async def queues(self) -> list[QueueInfo]:
        """Return the queues of this tenant, with the numbers of their jobs."""
        return await (await self._store()).queues(self._tenant)

    async def now(self) -> datetime:
        """Return the time of the store's clock, by which everything is decided."""
        return to_datetime(await (await self._store()).clock())

    async def events(self, *, every_tenant: Literal[False] = False) -> AsyncIterator[Event]:
        """Yield the events about jobs of this tenant in this process, after each commit, from now on."""
        async for event in self._events(every_tenant=every_tenant):
            yield event

    async def _events(self, *, every_tenant: bool, failures_only: bool = False) -> AsyncIterator[Event]:
        checks.flag(failures_only, "failures_only")
        if checks.flag(every_tenant, "every_tenant"):
            self._refuse_beyond("every_tenant=True")
        events = self._app_state.events
        async for event in events.failures() if failures_only else events.stream():
            if every_tenant or event.tenant == self._tenant:
                yield event

    async def _stored_history(self, job_id: str) -> StoredHistory:
        checks.text(job_id, "job_id")
        stored = await (await self._store()).history(self._tenant, job_id)
        if stored is None:
            raise missing(job_id)
        return stored


class WaitOperations(TenantOperations):
    """The waits that handles use: they return records and decoded values."""

    async def type_of(self, job_id: str) -> str:
        """Returns the name of the type of a job. Raises NotFound."""
        job, _ = await self._record(job_id)
        return job.type

    async def wait_for_record(self, job_id: str, timeout: Seconds | None) -> JobRecord:  # noqa: ASYNC109 # as `wait`
        """Waits until a job has ended and returns its record. If the job continued, waits for the end of its chain and
        returns the record of the last job, which has the result."""
        timeout_seconds = checks.timeout(timeout)
        session = await self._app_state.session()
        began = self._app_state.runtime.monotonic()
        job = await session.jobs.wait(self._tenant, job_id, timeout_seconds)
        if not job.flags & CHAINED or job.status is not Status.COMPLETED:
            return job
        left = None
        if timeout_seconds is not None:
            left = max(0.0, began + timeout_seconds - self._app_state.runtime.monotonic())
        return await session.chains.wait(self._tenant, job_id, left)

    async def wait_for_chain(self, job_id: str, timeout: Seconds | None) -> JobRecord:  # noqa: ASYNC109 # as `wait`
        """Waits until a chain has ended and returns the record of its last job."""
        WORKFLOWS.of(self._app_state.store)
        timeout_seconds = checks.timeout(timeout)
        session = await self._app_state.session()
        return await session.chains.wait(self._tenant, job_id, timeout_seconds)

    async def wait_for_group(
        self,
        job_id: str,
        timeout: Seconds | None,  # noqa: ASYNC109 # as `wait`
        *,
        raise_on_failure: bool = False,
    ) -> object:
        """Waits until the group of a job has closed and returns the value of the group."""
        store = WORKFLOWS.of(self._app_state.store)
        timeout_seconds = checks.timeout(timeout)
        checks.flag(raise_on_failure, "raise_on_failure")
        self._app_state.awaited.note(self._tenant, [job_id])
        session = await self._app_state.session()
        job, _ = await self._record(job_id)
        closed = await session.groups.wait(self._tenant, job.group_id or job.id, timeout_seconds)
        check_group(closed.root, closed.record, raise_on_failure=raise_on_failure)
        return await group_value(store, closed.root, closed.record, self._describe)

    def decode_result(self, job: JobRecord) -> object:
        """Returns the result of a job, decoded by its type if this app knows the type."""
        return self._describe.value(job.type, job.result)
