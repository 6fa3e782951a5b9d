"""The client: enqueue jobs, and look after them. Bound to one tenant; works from any loop.

No method is overloaded, so that the blocking face (sync.py) can be derived from this one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, Unpack, overload

from ropewalk.definitions.job import Job
from ropewalk.definitions.jobtype import JobType
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.definitions.submission import skips_queue, to_new_job
from ropewalk.domain.instants import Seconds, to_datetime, to_instant, to_span
from ropewalk.domain.job import JobRecord, NewJob
from ropewalk.domain.limits import check_priority
from ropewalk.domain.operator import Amendment, CancelStatus, RetryStatus, Revival
from ropewalk.domain.search import Order
from ropewalk.domain.states import State
from ropewalk.domain.why import Why, explain
from ropewalk.engine.answers import BulkResult, FailureCounts, RetryResult, SearchPage
from ropewalk.engine.around import surroundings
from ropewalk.engine.bulk import BATCH, in_bulk
from ropewalk.engine.core import Core
from ropewalk.engine.events import Event
from ropewalk.engine.filter import Filter, failed_ones, in_domain
from ropewalk.engine.handle import Enqueuing, Handle, caller_of
from ropewalk.engine.info import Describer, FailureInfo, HistoryInfo, JobInfo
from ropewalk.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from ropewalk.ports.exchange import Accepted, QueueInfo, ReviveAnswer, Submission, Trail, WorkerCard
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store import Store

S = TypeVar("S")
G = TypeVar("G")


class Client:
    def __init__(self, core: Core, tenant: str) -> None:
        self._core = core
        self._tenant = tenant
        self._describe = Describer(core.registry, core.codec)

    def tenant(self, name: str) -> Client:
        """The same client, bound to another tenant."""
        return Client(self._core, name)

    # ── enqueueing ──────────────────────────────────────────────────────────────────────────────────────────

    @overload
    def enqueue(self, job: Job[S, G], /, **options: Unpack[EnqueueOptions]) -> Enqueuing[S, G]: ...

    @overload
    def enqueue(
        self, job: str, arguments: Mapping[str, object], /, **options: Unpack[EnqueueOptions]
    ) -> Enqueuing[Any, Any]: ...

    def enqueue(
        self,
        job: Job[Any, Any] | str,
        arguments: Mapping[str, object] | None = None,
        /,
        **options: Unpack[EnqueueOptions],
    ) -> Enqueuing[Any, Any]:
        """Queue a job, durably. Lazy: await it for a Handle, or `.result()` for the value.

        >>> handle = await app.enqueue(add(1, b=2), delay=60)
        >>> total = await app.enqueue("add", {"a": 1, "b": 2}).result()
        """
        if isinstance(job, str):
            job = self._core.registry.get(job).from_arguments(arguments or {})
        return Enqueuing(self._enqueue(job, options), job, caller_of(1))

    async def enqueue_many(
        self, jobs: Iterable[Job[S, G]], /, *, atomic: bool = True, **options: Unpack[EnqueueOptions]
    ) -> list[Handle[S, G]]:
        """Queue many, in order: all or none (up to limits.batch_jobs_max), or in chunks with atomic=False."""
        given = list(jobs)
        limit = self._core.limits.batch_jobs_max
        if atomic and len(given) > limit:
            raise LimitExceeded(
                f"{len(given):,} jobs, over batch_jobs_max={limit:,} for one atomic batch: use atomic=False",
                field="jobs",
            )
        new = [self._new(job, options) for job in given]
        session = await self._core.session()
        handles: list[Handle[S, G]] = []
        size = limit if atomic else BATCH
        for start in range(0, len(new), size):
            accepted = await session.enqueuer.submit(Submission(jobs=new[start : start + size]))
            batch = zip(given[start : start + size], new[start : start + size], accepted, strict=True)
            handles.extend(self._handle(job, submitted, answer) for job, submitted, answer in batch)
        return handles

    async def _enqueue(self, job: Job[S, G], options: EnqueueOptions) -> Handle[S, G]:
        new = self._new(job, options)
        session = await self._core.session()
        skip = None
        if skips_queue(job, options):
            skip = self._core.skip_slot(new)
        submission = Submission(jobs=[new], skip_queue=None if skip is None else skip[1])
        (accepted,) = await session.enqueuer.submit(submission)
        if accepted.leased is not None and skip is not None:
            skip[0].adopt(accepted.leased)
        return self._handle(job, new, accepted)

    def _handle(self, job: Job[S, G], new: NewJob, accepted: Accepted) -> Handle[S, G]:
        """Bound to the tenant the job was given, which an option may have made another than ours."""
        client = self if new.tenant == self._tenant else self.tenant(new.tenant)
        return Handle(client, accepted.id, job.type, group_id=accepted.group_id, duplicate=accepted.duplicate)

    def _new(self, job: Job[Any, Any], options: EnqueueOptions) -> NewJob:
        core = self._core
        return to_new_job(job, call=options, defaults=core.defaults, limits=core.limits, tenant=self._tenant)

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────────────

    def handle(self, job_id: str, job_type: JobType[..., S, G]) -> Handle[S, G]:
        """A handle for a job queued elsewhere or earlier. Does not look whether it exists."""
        return Handle(self, job_id, job_type)

    async def get(self, job_id: str) -> JobInfo:
        job, now = await self._record(job_id)
        return self._describe.job(job, now)

    async def states(self, ids: Sequence[str]) -> dict[str, State]:
        """The states of those that exist."""
        read = await (await self._store()).get(self._tenant, ids)
        return {job_id: job.state_at(read.now) for job_id, job in read.jobs.items()}

    async def wait(self, job_id: str, timeout: float | None = None) -> JobInfo:  # noqa: ASYNC109 # fixed API
        """The job once it is terminal, whatever way it ended."""
        job = await self.wait_for_record(job_id, timeout)
        return self._describe.job(job, job.updated_at)

    async def search(
        self,
        wanted: Filter | None = None,
        *,
        order: Order = Order.CREATED_DESC,
        cursor: str | None = None,
        limit: int = 100,
    ) -> SearchPage:
        if not 1 <= limit <= 1000:
            raise InvalidInput(f"limit={limit} must be between 1 and 1000", field="limit")
        page = await (await self._store()).search(
            self._tenant, in_domain(wanted), order=order, cursor=cursor, limit=limit
        )
        return SearchPage([self._describe.job(job, page.now) for job in page.jobs], page.next_cursor)

    async def count(self, wanted: Filter | None = None) -> int:
        return await (await self._store()).count(self._tenant, in_domain(wanted))

    async def workflow(self, workflow_id: str) -> list[JobInfo]:
        """Every job of a workflow, in the order they were queued."""
        jobs: list[JobInfo] = []
        cursor = None
        while True:
            wanted = Filter(workflow_id=workflow_id)
            page = await self.search(wanted, order=Order.CREATED_ASC, cursor=cursor, limit=1000)
            jobs.extend(page.jobs)
            cursor = page.next_cursor
            if cursor is None:
                return jobs

    async def history(self, job_id: str) -> list[HistoryInfo]:
        """Everything that happened to the job, without gaps."""
        return self._describe.history(await self._trail(job_id))

    async def failure(self, job_id: str, *, all_attempts: bool = False) -> FailureInfo:
        return self._describe.failure(await self._trail(job_id), all_attempts=all_attempts)

    async def failures(
        self, wanted: Filter | None = None, *, cursor: str | None = None, limit: int = 100
    ) -> SearchPage:
        """Jobs that failed or are about to be retried, newest change first."""
        return await self.search(failed_ones(wanted), order=Order.UPDATED_DESC, cursor=cursor, limit=limit)

    async def failure_counts(self, wanted: Filter | None = None, *, limit: int = 10_000) -> FailureCounts:
        """The same jobs counted by category, code (else the exception's name) and type; the newest `limit` of them."""
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

    async def why(self, job_id: str) -> Why:
        """The one named cause this job is not running (or where it runs)."""
        job, now = await self._record(job_id)
        return explain(job, await surroundings(self._core.store, job, now), now)

    async def queues(self) -> list[QueueInfo]:
        return await (await self._store()).queues(self._tenant)

    async def workers(self) -> list[WorkerCard]:
        return await (await self._store()).workers()

    async def events(self, *, every_tenant: bool = False) -> AsyncIterator[Event]:
        """What happens in this process, after each commit, from now on. Other processes' events are not here."""
        async for event in self._core.events.stream():
            if every_tenant or event.tenant == self._tenant:
                yield event

    # ── changing ────────────────────────────────────────────────────────────────────────────────────────────

    async def cancel(self, job_id: str, *, reason: str | None = None, force: bool = False) -> CancelStatus:
        """Waiting: cancelled at once. Running: asked to stop, with force made to."""
        (status,) = await self._cancel([job_id], reason, force)
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
            for status in await self._cancel(ids, reason, force):
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
    ) -> RetryResult:
        """A new run of a failed or dead-lettered job, under the same id."""
        revival = self._revival(reset_attempts, priority, delay, fresh, include_cancelled)
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
        dry_run: bool = False,
    ) -> BulkResult:
        revival = self._revival(reset_attempts, priority, delay, fresh, include_cancelled)

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

    async def delete(self, job_id: str) -> None:
        """Remove a finished job and its history."""
        gone = (await (await self._store()).delete(self._tenant, [job_id]))[job_id]
        if gone is None:
            raise _missing(job_id)
        if not gone:
            raise Conflict(f"job {job_id} is not finished: cancel it first")

    async def delete_many(self, jobs: Sequence[str] | Filter, *, dry_run: bool = False) -> BulkResult:
        async def act(ids: Sequence[str], result: BulkResult) -> None:
            for gone in (await self._core.store.delete(self._tenant, ids)).values():
                result.tally(done=gone is True, missing=gone is None)

        return await in_bulk(await self._store(), self._tenant, jobs, act, dry_run=dry_run)

    async def pause(self, queue: str) -> None:
        """Nothing of this queue is claimed until resume; what runs goes on."""
        await self._pause(queue, paused=True)

    async def resume(self, queue: str) -> None:
        await self._pause(queue, paused=False)

    async def once(self, key: str, ttl: Seconds = 86_400.0) -> bool:
        """True for the first caller of this key, fleet-wide, until the ttl has passed."""
        return await (await self._store()).once(self._tenant, key, to_span(ttl, "ttl"))

    # ── for handles ─────────────────────────────────────────────────────────────────────────────────────────

    async def wait_for_record(self, job_id: str, timeout_seconds: float | None) -> JobRecord:
        session = await self._core.session()
        return await session.waiter.wait(self._tenant, job_id, timeout_seconds)

    def decode_untyped(self, job: JobRecord) -> object:
        return None if job.result is None else self._core.codec.decode(job.result, Any)

    # ── behind the verbs ────────────────────────────────────────────────────────────────────────────────────

    async def _store(self) -> Store:
        await self._core.open()
        return self._core.store

    async def _record(self, job_id: str) -> tuple[JobRecord, int]:
        read = await (await self._store()).get(self._tenant, [job_id])
        job = read.jobs.get(job_id)
        if job is None:
            raise _missing(job_id)
        return job, read.now

    async def _trail(self, job_id: str) -> Trail:
        trail = await (await self._store()).trail(self._tenant, job_id)
        if trail is None:
            raise _missing(job_id)
        return trail

    async def _cancel(self, ids: Sequence[str], reason: str | None, force: bool) -> list[CancelStatus]:  # noqa: FBT001
        answers = await (await self._store()).cancel(self._tenant, ids, reason=reason, force=force)
        ended = tuple(answer.id for answer in answers if answer.status is CancelStatus.CANCELLED)
        self._core.store.notifier.publish(Hint(finished=ended, control=True))
        return [answer.status for answer in answers]

    def _revival(
        self,
        reset_attempts: bool,  # noqa: FBT001
        priority: int | None,
        delay: Seconds,
        fresh: bool,  # noqa: FBT001
        include_cancelled: bool,  # noqa: FBT001
    ) -> Revival:
        if priority is not None:
            check_priority(priority, self._core.limits)
        return Revival(
            reset_attempts=reset_attempts,
            priority=priority,
            delay_us=to_span(delay, "delay"),
            fresh=fresh,
            include_cancelled=include_cancelled,
        )

    async def _revive(self, ids: Sequence[str], revival: Revival) -> list[ReviveAnswer]:
        answers = await (await self._store()).revive(self._tenant, ids, revival)
        self._core.store.notifier.publish(Hint(many=True))
        return answers

    async def _amend(self, job_id: str, amendment: Amendment, what: str) -> JobInfo:
        answer = await (await self._store()).amend(self._tenant, job_id, amendment)
        if answer.job is None:
            if answer.state is None:
                raise _missing(job_id)
            raise Conflict(f"job {job_id} is {answer.state.value}: only a waiting job can be {what}")
        self._core.store.notifier.publish(Hint(ready=(answer.job.queue,)))
        return self._describe.job(answer.job, answer.job.updated_at)

    async def _pause(self, queue: str, *, paused: bool) -> None:
        await (await self._store()).pause(self._tenant, queue, paused=paused)
        self._core.store.notifier.publish(Hint(ready=() if paused else (queue,), control=True))


_CANCELLED = frozenset({CancelStatus.CANCELLED, CancelStatus.CANCEL_REQUESTED})


def _missing(job_id: str) -> NotFound:
    return NotFound(f"no job {job_id!r} for this tenant (never submitted, or deleted after its retention)")
