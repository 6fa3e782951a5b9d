"""The client: enqueue jobs, and look after them. Bound to one tenant; works from any loop.

No method is overloaded, so that the blocking face (sync.py) can be derived from this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, Unpack, overload

from msgspec import structs

from ropewalk.definitions.job import Job
from ropewalk.definitions.jobtype import JobType
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.definitions.submission import skips_queue, to_new_job
from ropewalk.domain.job import NewJob
from ropewalk.engine.bulk import BATCH
from ropewalk.engine.handle import Enqueuing, Handle, caller_of
from ropewalk.engine.tracing import Sending
from ropewalk.engine.verbs.changing import Changing
from ropewalk.engine.verbs.deleting import Deleting
from ropewalk.engine.verbs.flowing import Flowing
from ropewalk.engine.verbs.looking import Looking
from ropewalk.engine.verbs.waiting import Waiting
from ropewalk.errors import LimitExceeded
from ropewalk.ports.exchange import Accepted, Submission

S = TypeVar("S")
G = TypeVar("G")


class Client(Looking, Changing, Deleting, Flowing, Waiting):
    """Enqueueing is here; what else it can do stands in engine.verbs, by family."""

    def tenant(self, name: str) -> Client:
        """The same client, bound to another tenant."""
        return Client(self._core, name)

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
        handles: list[Handle[S, G]] = []
        size = limit if atomic else BATCH
        for start in range(0, len(new), size):
            accepted = await self._submit(Submission(jobs=new[start : start + size]))
            batch = zip(given[start : start + size], new[start : start + size], accepted, strict=True)
            handles.extend(self._handle(job, submitted, answer) for job, submitted, answer in batch)
        return handles

    async def _enqueue(self, job: Job[S, G], options: EnqueueOptions) -> Handle[S, G]:
        new = self._new(job, options)
        skip = None
        if new.gate is None and skips_queue(job, options):
            skip = self._core.skip_slot(new)
        submission = Submission(jobs=[new], skip_queue=None if skip is None else skip[1])
        (accepted,) = await self._submit(submission)
        if accepted.leased is not None and skip is not None:
            skip[0].adopt(accepted.leased)
        return self._handle(job, new, accepted)

    async def _submit(self, submission: Submission) -> list[Accepted]:
        core, session = self._core, await self._core.session()
        if core.tracing is None:
            return await session.enqueuer.submit(submission)
        with Sending(submission, core.tracing, core.events) as traced:
            return await session.enqueuer.submit(traced)

    def _handle(self, job: Job[S, G], new: NewJob, accepted: Accepted) -> Handle[S, G]:
        """Bound to the tenant the job was given, which an option may have made another than ours."""
        client = self if new.tenant == self._tenant else self.tenant(new.tenant)
        return Handle(client, accepted.id, job.type, group_id=accepted.group_id, duplicate=accepted.duplicate)

    def _new(self, job: Job[Any, Any], options: EnqueueOptions) -> NewJob:
        core = self._core
        new = to_new_job(job, call=options, defaults=core.defaults, limits=core.limits, tenant=self._tenant)
        return structs.replace(new, report_orphan=True) if core.reports_orphans else new

    def handle(self, job_id: str, job_type: JobType[..., S, G]) -> Handle[S, G]:
        """A handle for a job queued elsewhere or earlier. Does not look whether it exists."""
        return Handle(self, job_id, job_type)
