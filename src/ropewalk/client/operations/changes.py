"""What people do to jobs, queues and workers: cancel, retry, trigger, update, pause, drain.

Removing finished jobs, never from under somebody who still needs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from ropewalk.client.filter import Filter
from ropewalk.client.operations.base import Bound, check_cancel, in_bulk, missing, repeated
from ropewalk.client.views.answers import BulkResult, RetryResult
from ropewalk.client.views.jobs import JobInfo
from ropewalk.client.views.workflows import UNFINISHED, dependants_of, jobs_of
from ropewalk.domain import checks
from ropewalk.domain.bounds import check_payload, check_priority
from ropewalk.domain.jobs.operations import Amendment, CancelStatus, RetryStatus, Revival
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.search import Filter as Wanted
from ropewalk.domain.time import Seconds, to_datetime, to_delay, to_instant
from ropewalk.errors import Conflict, InvalidInput
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.messages import Deletion, ReviveAnswer

_CANCELLED = frozenset({CancelStatus.CANCELLED, CancelStatus.CANCEL_REQUESTED})


class Changing(Bound):
    async def cancel(self, job_id: str, *, reason: str | None = None, force: bool = False) -> CancelStatus:
        """Waiting: cancelled at once. Running: asked to stop, with force made to."""
        checks.text(job_id, "job_id")
        check_cancel(reason, force=force)
        (status,) = await self._cancel([job_id], reason=reason, force=force)
        return status

    async def cancel_many(
        self,
        jobs: Iterable[str] | Filter,
        *,
        reason: str | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> BulkResult:
        """Cancel the jobs of these ids, or all that a filter matches."""
        check_cancel(reason, force=force)

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
        arguments: Mapping[str, object] | None = None,
    ) -> RetryResult:
        """A new run of a failed or dead-lettered job, under the same id.

        reset_attempts: False counts its attempts and crashes on; where they are used up, it gets one more.
        cascade: what never started because this job had failed waits for it again.
        arguments: run with these instead, all of them by name, as its type would be called.
        """
        checks.text(job_id, "job_id")
        data = None if arguments is None else await self._arguments_for(job_id, arguments)
        revival = self._revival(
            arguments=data,
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
        if arguments is None and priority is None and run_at is None:
            raise InvalidInput(f"nothing is given that job {job_id} should become: give what changes", field="job_id")
        data = None if arguments is None else await self._arguments_for(job_id, arguments)
        if priority is not None:
            check_priority(priority, self._core.limits)
        at = None if run_at is None else to_instant(run_at, "run_at")
        return await self._amend(job_id, Amendment(input=data, priority=priority, run_at=at), "updated")

    async def pause(self, queue: str) -> None:
        """Nothing of this queue is claimed until resume; what runs goes on."""
        await self._pause(queue, paused=True)

    async def resume(self, queue: str) -> None:
        await self._pause(queue, paused=False)

    async def once(
        self,
        key: str,
        ttl: Seconds = 86_400.0,
        *,
        id: str | None = None,  # noqa: A002  the word that enqueue uses
    ) -> bool:
        """True for the first caller of this key, fleet-wide, until the ttl has passed.

        After an OutcomeUnknown, ask again with the same `id`: whoever was first is told so again.

        >>> await app.once("report-2027-01", id="nightly-run-17")
        """
        self._name(key, "key")
        checks.text_or_none(id, "id")
        span = checks.positive_span(ttl, "ttl")
        store = await self._store()
        return await repeated(lambda by: store.once(self._tenant, key, span, by=by), self._core.runtime, id)

    async def _arguments_for(self, job_id: str, arguments: Mapping[str, object]) -> bytes:
        """The arguments as the type of this job stores them. Raises UnknownJobType, InvalidInput and LimitExceeded."""
        job, _ = await self._record(job_id)
        data = self._core.registry.get(job.type).from_arguments(arguments).input
        check_payload(job.type, data, self._core.limits)
        return data

    def _revival(
        self,
        *,
        arguments: bytes | None = None,
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
            input=arguments,
            reset_attempts=checks.flag(reset_attempts, "reset_attempts"),
            priority=priority,
            delay_us=to_delay(delay, "delay"),
            fresh=checks.flag(fresh, "fresh"),
            include_cancelled=checks.flag(include_cancelled, "include_cancelled"),
            cascade=checks.flag(cascade, "cascade"),
        )

    async def _revive(self, ids: Sequence[str], revival: Revival) -> list[ReviveAnswer]:
        answers = await (await self._store()).retry(self._tenant, ids, revival)
        self._core.store.notifier.publish(Hint(many=True))
        return answers

    async def _amend(self, job_id: str, amendment: Amendment, what: str) -> JobInfo:
        checks.text(job_id, "job_id")
        answer = await (await self._store()).update(self._tenant, job_id, amendment)
        if answer.job is None:
            if answer.state is None:
                raise missing(job_id)
            raise Conflict(f"job {job_id} is {answer.state.value}: only a waiting job can be {what}")
        self._core.store.notifier.publish(Hint(ready=(answer.job.queue,)))
        return self._describe.job(answer.job, answer.job.updated_at)

    async def _pause(self, queue: str, *, paused: bool) -> None:
        self._name(queue, "queue")
        await (await self._store()).pause(self._tenant, queue, paused=paused)
        self._core.store.notifier.publish(Hint(ready=() if paused else (queue,), control=True))


class Deleting(Bound):
    async def delete(self, job_id: str) -> None:
        """Remove a finished job and its history. Raises Conflict while it has not ended, or while others need it."""
        checks.text(job_id, "job_id")
        answer = (await (await self._store()).delete(self._tenant, [job_id]))[job_id]
        match answer:
            case Deletion.DELETED:
                return
            case Deletion.NOT_FOUND:
                raise missing(job_id)
            case Deletion.NOT_TERMINAL:
                raise Conflict(f"job {job_id} is not finished: cancel it first")
            case Deletion.IN_USE:
                raise await self._in_use([job_id])

    async def delete_many(self, jobs: Iterable[str] | Filter, *, dry_run: bool = False) -> BulkResult:
        """Those that are not finished, or that others need, are skipped."""

        async def act(ids: Sequence[str], result: BulkResult) -> None:
            for answer in (await self._core.store.delete(self._tenant, ids)).values():
                result.tally(done=answer is Deletion.DELETED, missing=answer is Deletion.NOT_FOUND)

        return await in_bulk(await self._store(), self._tenant, jobs, act, dry_run=dry_run)

    async def delete_chain(self, job_id: str, *, cascade: bool = False) -> None:
        """Remove every job of the chain this one is in. Raises Conflict while one runs, or while others need it.

        cascade: what waits in the chain, or for it, is cancelled and removed, too.
        """
        checks.text(job_id, "job_id")
        checks.flag(cascade, "cascade")
        store = await self._store()
        members = await store.chain(self._tenant, job_id)
        if not members:
            raise missing(job_id)
        outside = await dependants_of(store, self._tenant, members)
        doomed = [*members, *outside]
        if cascade:
            _refuse([job for job in doomed if job.status is Status.RUNNING], "runs: cancel it first")
            waiting = [job.id for job in doomed if not job.terminal]
            await self._cancel(waiting, reason=f"the chain of {job_id} is deleted", force=False)
        else:
            _refuse([job for job in members if not job.terminal], "has not ended: cancel it first, or say cascade=True")
            _refuse(outside, "depends on this chain and has not ended: cancel it first, or say cascade=True")
        answers = await store.delete(self._tenant, [job.id for job in doomed])
        kept = [each for each, answer in answers.items() if answer in (Deletion.IN_USE, Deletion.NOT_TERMINAL)]
        if kept:
            raise await self._in_use(kept)

    async def _in_use(self, ids: Sequence[str]) -> Conflict:
        """Who needs them: what depends on them, or what was queued under them and has not ended."""
        store = self._core.store
        jobs = list((await store.get(self._tenant, ids)).jobs.values())
        users = await dependants_of(store, self._tenant, jobs)
        for job_id in ids:
            under = Wanted(parent_id=job_id, states=UNFINISHED)
            users += [job async for job, _ in jobs_of(store, self._tenant, under, limit=3)]
        told = _named(users) or "something under it has not ended"
        return Conflict(f"{_plural(ids)} is still needed by {told}: delete it when they have ended")


def _refuse(jobs: Sequence[JobRecord], why: str) -> None:
    if jobs:
        raise Conflict(f"{_named(jobs)} {why}")


def _named(jobs: Sequence[JobRecord]) -> str:
    return _plural([f"{job.id} ({job.type})" for job in jobs])


def _plural(names: Iterable[str]) -> str:
    """The first three of them."""
    all_names = list(names)
    more = f" and {len(all_names) - 3} more" if len(all_names) > 3 else ""
    return ", ".join(all_names[:3]) + more
