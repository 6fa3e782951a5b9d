"""What people do to jobs, queues and workers: cancel, retry, trigger, update, pause, drain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ropewalk.client.filter import Filter
from ropewalk.client.operations.base import Bound, missing
from ropewalk.client.operations.bulk import in_bulk
from ropewalk.client.views.answers import BulkResult, RetryResult
from ropewalk.client.views.jobs import JobInfo
from ropewalk.domain.bounds import check_priority
from ropewalk.domain.jobs.operations import Amendment, CancelStatus, RetryStatus, Revival
from ropewalk.domain.time import Seconds, to_datetime, to_instant, to_span
from ropewalk.errors import Conflict, NotFound
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.messages import ReviveAnswer

_CANCELLED = frozenset({CancelStatus.CANCELLED, CancelStatus.CANCEL_REQUESTED})


class Changing(Bound):
    async def cancel(self, job_id: str, *, reason: str | None = None, force: bool = False) -> CancelStatus:
        """Waiting: cancelled at once. Running: asked to stop, with force made to."""
        (status,) = await self._cancel([job_id], reason=reason, force=force)
        return status

    async def cancel_many(
        self,
        jobs: Sequence[str] | Filter,
        *,
        reason: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> BulkResult:
        async def act(ids: Sequence[str], result: BulkResult) -> None:
            for status in await self._cancel(ids, reason=reason, force=force):
                result.tally(done=status in _CANCELLED, missing=status is CancelStatus.NOT_FOUND)

        return await in_bulk(await self._store(), self._tenant, jobs, act, dry_run=dry_run)

    async def retry(
        self,
        job_id: str,
        *,
        reset_attempts: bool = True,
        priority: int | None = None,
        delay: Seconds = 0.0,
        fresh: bool = False,
        include_cancelled: bool = False,
        cascade: bool = False,
    ) -> RetryResult:
        """A new run of a failed or dead-lettered job, under the same id.

        cascade: what never started because this job had failed waits for it again.
        """
        revival = self._revival(
            reset_attempts=reset_attempts,
            priority=priority,
            delay=delay,
            fresh=fresh,
            include_cancelled=include_cancelled,
            cascade=cascade,
        )
        (answer,) = await self._revive([job_id], revival)
        return RetryResult(
            job_id=answer.id,
            status=answer.status,
            new_state=answer.state,
            scheduled_for=None if answer.run_at is None else to_datetime(answer.run_at),
            reason=answer.reason,
        )

    async def retry_many(
        self,
        jobs: Sequence[str] | Filter,
        *,
        reset_attempts: bool = True,
        priority: int | None = None,
        delay: Seconds = 0.0,
        fresh: bool = False,
        include_cancelled: bool = False,
        cascade: bool = False,
        dry_run: bool = False,
    ) -> BulkResult:
        revival = self._revival(
            reset_attempts=reset_attempts,
            priority=priority,
            delay=delay,
            fresh=fresh,
            include_cancelled=include_cancelled,
            cascade=cascade,
        )

        async def act(ids: Sequence[str], result: BulkResult) -> None:
            for answer in await self._revive(ids, revival):
                result.tally(done=answer.status is RetryStatus.QUEUED, missing=answer.status is RetryStatus.NOT_FOUND)

        return await in_bulk(await self._store(), self._tenant, jobs, act, dry_run=dry_run)

    async def trigger(self, job_id: str) -> JobInfo:
        """Run a delayed (or retrying) job now."""
        return await self._amend(job_id, Amendment(run_now=True), "triggered")

    async def update(
        self,
        job_id: str,
        *,
        arguments: Mapping[str, object] | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
    ) -> JobInfo:
        """Change a job that waits."""
        data = None
        if arguments is not None:
            job, _ = await self._record(job_id)
            data = self._core.registry.get(job.type).from_arguments(arguments).input
        if priority is not None:
            check_priority(priority, self._core.limits)
        at = None if run_at is None else to_instant(run_at, "run_at")
        return await self._amend(job_id, Amendment(input=data, priority=priority, run_at=at), "updated")

    async def pause(self, queue: str) -> None:
        """Nothing of this queue is claimed until resume; what runs goes on."""
        await self._pause(queue, paused=True)

    async def resume(self, queue: str) -> None:
        await self._pause(queue, paused=False)

    async def drain_worker(self, worker_id: str) -> None:
        """Tell a worker, wherever it runs, to stop as SIGTERM would: it finishes what runs and gives the rest back.

        It hears of it at once where wake-ups arrive, else within a third of its lease. Raises NotFound.
        """
        if not await (await self._store()).drain(worker_id):
            raise NotFound(f"no worker {worker_id!r}: it has stopped, or never was (app.workers() lists them)")
        self._core.store.notifier.publish(Hint(control=True))

    async def once(self, key: str, ttl: Seconds = 86_400.0) -> bool:
        """True for the first caller of this key, fleet-wide, until the ttl has passed."""
        return await (await self._store()).once(self._tenant, key, to_span(ttl, "ttl"))

    def _revival(
        self,
        *,
        reset_attempts: bool,
        priority: int | None,
        delay: Seconds,
        fresh: bool,
        include_cancelled: bool,
        cascade: bool,
    ) -> Revival:
        if priority is not None:
            check_priority(priority, self._core.limits)
        return Revival(
            reset_attempts=reset_attempts,
            priority=priority,
            delay_us=to_span(delay, "delay"),
            fresh=fresh,
            include_cancelled=include_cancelled,
            cascade=cascade,
        )

    async def _revive(self, ids: Sequence[str], revival: Revival) -> list[ReviveAnswer]:
        answers = await (await self._store()).revive(self._tenant, ids, revival)
        self._core.store.notifier.publish(Hint(many=True))
        return answers

    async def _amend(self, job_id: str, amendment: Amendment, what: str) -> JobInfo:
        answer = await (await self._store()).amend(self._tenant, job_id, amendment)
        if answer.job is None:
            if answer.state is None:
                raise missing(job_id)
            raise Conflict(f"job {job_id} is {answer.state.value}: only a waiting job can be {what}")
        self._core.store.notifier.publish(Hint(ready=(answer.job.queue,)))
        return self._describe.job(answer.job, answer.job.updated_at)

    async def _pause(self, queue: str, *, paused: bool) -> None:
        await (await self._store()).pause(self._tenant, queue, paused=paused)
        self._core.store.notifier.publish(Hint(ready=() if paused else (queue,), control=True))
