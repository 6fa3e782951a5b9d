"""People change jobs and queues: they cancel, retry, trigger and update jobs, and pause and resume queues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import structs

from ropewalk.client.filter import Filter
from ropewalk.client.operations.base import BATCH, TenantOperations, check_cancel, in_bulk, missing, repeated
from ropewalk.client.views.answers import BulkResult, CancelResult, RetryResult, why_not_retried
from ropewalk.client.views.jobs import JobInfo
from ropewalk.domain import checks
from ropewalk.domain.bounds import check_payload, check_priority
from ropewalk.domain.jobs.operations import (
    DEPENDANTS_UNRESOLVED,
    UNMET_DEPENDENCIES,
    RetryRequest,
    RetryStatus,
    UpdateRequest,
)
from ropewalk.domain.time import Seconds, to_datetime, to_delay, to_instant
from ropewalk.errors import Conflict, InvalidInput, RevMismatch
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.operations import RetryAnswer

_LATER: Final = frozenset({DEPENDANTS_UNRESOLVED, UNMET_DEPENDENCIES})
"""A retry that is refused for one of these reasons may succeed when postponed consequences have been applied."""
_IDLE_SECONDS: Final = 0.1
"""The wait after a look for postponed consequences that found none."""
_IDLE_MAX: Final = 20
"""A retry waits this often for postponed consequences that other workers apply, before it is refused."""


class ChangeOperations(TenantOperations):
    """Changes the jobs and queues of a tenant."""

    async def cancel(self, job_id: str, *, reason: str | None = None, force: bool = False) -> CancelResult:
        """Cancel a job. A waiting job is cancelled at once. A running one is asked to stop; `force` stops its
        handler."""
        checks.text(job_id, "job_id")
        check_cancel(reason, force=force)
        (answer,) = await self._cancel([job_id], reason=reason, force=force)
        return CancelResult(job_id=answer.id, status=answer.status, previous_state=answer.previous)

    async def cancel_many(
        self,
        jobs: Iterable[str] | Filter,
        *,
        reason: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> BulkResult:
        """Cancel the jobs with these ids, or all that match a filter."""
        check_cancel(reason, force=force)

        async def act(ids: Sequence[str], result: BulkResult) -> None:
            await self._cancel_into(result, ids, reason=reason, force=force)

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
        arguments: Mapping[str, object] | None = None,
        of_run: int | None = None,
        from_step: str | None = None,
    ) -> RetryResult:
        """Begin a new run of a failed or dead-lettered job, under the same id.

        reset_attempts: False continues to count its attempts and crashes; if they are used up, it gets one more.
        cascade: jobs that never started because this job had failed wait for it again.
        arguments: the job runs with these arguments instead. All of them are passed by name, as in a call of its type.
        of_run: the job is retried only if it is still in this run, which `JobInfo.run` has shown. So a failure that
            several people have seen is retried once.
        from_step: the new run keeps the results of the durable steps before the one of this name, and does this one
            and the later ones again. If no such step is stored, the retry is refused with the reason `no_such_step`.

        A job that never started waits for its dependencies again. If its gate can no longer open, the retry is refused
        with the reason `unmet_dependencies`: retry the parent with cascade, or this job after the parent.
        """
        checks.text(job_id, "job_id")
        checks.positive_or_none(of_run, "of_run")
        if checks.text_or_none(from_step, "from_step") is not None:
            WORKFLOWS.of(self._app_state.store)
            if fresh:
                told = f"from_step={from_step!r} keeps the steps before it, and fresh=True none: give only one of them"
                raise InvalidInput(told, field="from_step")
        data = None if arguments is None else await self._arguments_for(job_id, arguments)
        request = self._retry_request(
            arguments=data,
            reset_attempts=reset_attempts,
            priority=priority,
            delay=delay,
            fresh=fresh,
            include_cancelled=include_cancelled,
            cascade=cascade,
        )
        request = structs.replace(request, of_run=of_run, from_step=from_step)
        (answer,) = await self._retry([job_id], request)
        return RetryResult(
            job_id=answer.id,
            status=answer.status,
            new_state=answer.state,
            scheduled_for=None if answer.run_at is None else to_datetime(answer.run_at),
            reason=answer.reason,
        )

    async def retry_many(
        self,
        jobs: Iterable[str] | Filter,
        *,
        reset_attempts: bool = True,
        priority: int | None = None,
        delay: Seconds = 0.0,
        fresh: bool = False,
        include_cancelled: bool = False,
        cascade: bool = False,
        dry_run: bool = False,
    ) -> BulkResult:
        """Retry the jobs with these ids, or all that match a filter. The options are those of `retry`."""
        request = self._retry_request(
            reset_attempts=reset_attempts,
            priority=priority,
            delay=delay,
            fresh=fresh,
            include_cancelled=include_cancelled,
            cascade=cascade,
        )

        unmet: list[str] = []

        async def act(ids: Sequence[str], result: BulkResult) -> None:
            for answer in await self._retry(ids, request):
                match answer.status:
                    case RetryStatus.QUEUED:
                        result.done += 1
                    case RetryStatus.NOT_FOUND:
                        result.miss(answer.id)
                    case RetryStatus.NOT_RETRIABLE if answer.reason == UNMET_DEPENDENCIES:
                        unmet.append(answer.id)
                    case RetryStatus.NOT_RETRIABLE:
                        result.skip(answer.id, answer.reason or answer.status.value, why_not_retried(answer.reason))

        result = await in_bulk(await self._store(), self._tenant, jobs, act, dry_run=dry_run)
        while left := unmet.copy():  # Their parents may have been in a later batch.
            unmet.clear()
            for start in range(0, len(left), BATCH):
                await act(left[start : start + BATCH], result)
            if len(unmet) == len(left):
                for each in left:
                    result.skip(each, UNMET_DEPENDENCIES, why_not_retried(UNMET_DEPENDENCIES))
                break
        return result

    async def trigger(self, job_id: str) -> JobInfo:
        """Make a delayed or retrying job ready now."""
        return await self._update(job_id, UpdateRequest(run_now=True), "triggered")

    async def update(
        self,
        job_id: str,
        *,
        arguments: Mapping[str, object] | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        if_rev: int | None = None,
    ) -> JobInfo:
        """Change a waiting job. `arguments` replaces all of its arguments: one that is left out takes its default.

        `if_rev` is `JobInfo.rev` as you read it: if the job has changed since, RevMismatch is raised and the job stays
        as it is.
        """
        if arguments is None and priority is None and run_at is None:
            raise InvalidInput(f"there is nothing to change in job {job_id}: give at least one option", field="job_id")
        data = None if arguments is None else await self._arguments_for(job_id, arguments)
        if priority is not None:
            check_priority(priority, self._app_state.bounds)
        at = None if run_at is None else to_instant(run_at, "run_at")
        checks.positive_or_none(if_rev, "if_rev")
        request = UpdateRequest(input=data, priority=priority, run_at=at, if_rev=if_rev)
        return await self._update(job_id, request, "updated")

    async def pause(self, queue: str) -> None:
        """Pause a queue: its jobs are not claimed until it is resumed. Running jobs go on."""
        await self._pause(queue, paused=True)

    async def resume(self, queue: str) -> None:
        """Resume a paused queue."""
        await self._pause(queue, paused=False)

    async def once(
        self,
        key: str,
        ttl: Seconds = 86_400.0,
        *,
        id: str | None = None,  # noqa: A002  the word that enqueue uses
    ) -> bool:
        """Return True for the first call with this key in the whole fleet until the ttl has passed, and False for
        others.

        After an OutcomeUnknown, call it again with the same `id`: the first caller gets True again.

        >>> await app.once("report-2027-01", id="nightly-run-17")
        """
        self._name(key, "key")
        checks.text_or_none(id, "id")
        span = checks.positive_span(ttl, "ttl")
        store = await self._store()
        return await repeated(lambda by: store.once(self._tenant, key, span, by=by), self._app_state.runtime, id)

    async def _arguments_for(self, job_id: str, arguments: Mapping[str, object]) -> bytes:
        """Returns the arguments encoded by the type of this job. Raises UnknownJobType, InvalidInput and
        LimitExceeded."""
        job, _ = await self._record(job_id)
        data = self._app_state.named_job(job.type, arguments).input
        check_payload(job.type, data, self._app_state.bounds)
        return data

    def _retry_request(
        self,
        *,
        arguments: bytes | None = None,
        reset_attempts: bool,
        priority: int | None,
        delay: Seconds,
        fresh: bool,
        include_cancelled: bool,
        cascade: bool,
    ) -> RetryRequest:
        if priority is not None:
            check_priority(priority, self._app_state.bounds)
        return RetryRequest(
            input=arguments,
            reset_attempts=checks.flag(reset_attempts, "reset_attempts"),
            priority=priority,
            delay_us=to_delay(delay, "delay"),
            fresh=checks.flag(fresh, "fresh"),
            include_cancelled=checks.flag(include_cancelled, "include_cancelled"),
            cascade=checks.flag(cascade, "cascade"),
        )

    async def _retry(self, ids: Sequence[str], request: RetryRequest) -> list[RetryAnswer]:
        """Retries jobs. If consequences of the end of a job were postponed, they are applied first."""
        store = await self._store()
        answers = dict(enumerate(await store.retry(self._tenant, ids, request)))
        idle = 0
        while idle < _IDLE_MAX and any(answer.reason == DEPENDANTS_UNRESOLVED for answer in answers.values()):
            idle = 0 if await self._apply_postponed() else idle + 1
            left = [place for place, answer in answers.items() if answer.reason in _LATER]
            again = await store.retry(self._tenant, [ids[place] for place in left], request)
            answers |= zip(left, again, strict=True)
        store.notifier.publish(Hint(many=True))
        return list(answers.values())

    async def _apply_postponed(self) -> bool:
        """Applies postponed consequences in one transaction. If there are none, waits for a moment, because a worker
        may be applying them now, and returns False.
        """
        consequences = await WORKFLOWS.of(await self._store()).cascade(BATCH)
        self._publish([], consequences)
        if consequences.more or consequences.moved or consequences.ready or consequences.closed:
            return True
        await self._app_state.runtime.sleep(_IDLE_SECONDS)
        return False

    async def _update(self, job_id: str, request: UpdateRequest, what: str) -> JobInfo:
        checks.text(job_id, "job_id")
        answer = await (await self._store()).update(self._tenant, job_id, request)
        if answer.job is None:
            if answer.state is None:
                raise missing(job_id)
            if answer.rev is not None and request.if_rev is not None:
                told = f"job {job_id} has rev {answer.rev}, not if_rev={request.if_rev}: it has changed; read it again"
                raise RevMismatch(told, expected=request.if_rev, current=answer.rev)
            raise Conflict(f"job {job_id} is {answer.state.value}: only a waiting job can be {what}")
        self._app_state.store.notifier.publish(Hint(ready=(answer.job.queue,)))
        return self._describe.job(answer.job, answer.job.updated_at)

    async def _pause(self, queue: str, *, paused: bool) -> None:
        self._name(queue, "queue")
        await (await self._store()).pause(self._tenant, queue, paused=paused)
        self._app_state.store.notifier.publish(Hint(ready=() if paused else (queue,), control=True))
