"""The client enqueues the jobs of one tenant, and reads and changes them. It can be used on any event loop.

The methods that concern more than one tenant are in store_client.py.

Only `enqueue` is overloaded, so that the blocking client (sync.py) can be derived from the other methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from ropewalk.client.handle import Enqueuing, Handle, caller_of
from ropewalk.client.operations.base import BATCH
from ropewalk.client.operations.changes import ChangeOperations
from ropewalk.client.operations.limits import LimitOperations
from ropewalk.client.operations.queries import QueryOperations, WaitOperations
from ropewalk.client.operations.quotas import QuotaOperations
from ropewalk.client.operations.removal import RemovalOperations
from ropewalk.client.operations.schedules import ScheduleOperations
from ropewalk.client.operations.statistics import StatisticsOperations
from ropewalk.client.operations.workflows import WorkflowOperations
from ropewalk.client.partial_batch import partly_enqueued, submit_in_part
from ropewalk.client.user_transactions import LoopThread, submit_within, submit_within_here
from ropewalk.definitions.job import Job, checked_job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.definitions.submission import skips_queue
from ropewalk.domain import checks
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.shown_values import shown
from ropewalk.errors import InvalidInput, LimitExceeded, RopewalkError
from ropewalk.ports.store.submission import Accepted, Submission
from ropewalk.ports.store.user_transactions import UserConnection

S = TypeVar("S")
G = TypeVar("G")


class Client(
    QueryOperations,
    StatisticsOperations,
    ChangeOperations,
    RemovalOperations,
    WorkflowOperations,
    LimitOperations,
    QuotaOperations,
    ScheduleOperations,
    WaitOperations,
):
    """The client of one tenant, which `app.tenant("acme")` returns. It cannot reach the jobs of other tenants.

    This class enqueues. The other methods are in client.operations, one module for each family.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Raises BeyondTenant, instead of AttributeError, for a method that only the client of the app has."""
            from ropewalk.client.store_client import StoreClient

            if not name.startswith("_") and hasattr(StoreClient, name):
                self._refuse_beyond(f"{name}()")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @overload
    def enqueue(
        self, job: Job[S, G], /, *, connection: UserConnection | None = None, **options: Unpack[EnqueueOptions]
    ) -> Enqueuing[S, G]: ...

    @overload
    def enqueue(
        self,
        job: str,
        arguments: Mapping[str, object],
        /,
        *,
        connection: UserConnection | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Enqueuing[Any, Any]: ...

    def enqueue(
        self,
        job: Job[Any, Any] | str,
        arguments: Mapping[str, object] | None = None,
        /,
        *,
        connection: UserConnection | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Enqueuing[Any, Any]:
        """Enqueue a job durably. Nothing happens before you await it for a Handle, or await `.result()` for the value.

        With `connection` the job is enqueued in the transaction of that connection, and exists only if that commits.

        >>> handle = await app.enqueue(add(1, b=2), delay=60)
        >>> total = await app.enqueue("add", {"a": 1, "b": 2}).result()
        """
        if type(job) is not Job or arguments is not None:
            job = job_to_enqueue(self, job, arguments)
        # This is checked here, so that a warning can name the line of the caller.
        self._app_state.unregistered.check_type(job.type.name)
        if connection is not None:
            # It uses the connection of its caller, so it is cancelled together with its caller.
            return Enqueuing(self._enqueue_within(job, connection, options), job, caller_of(1), shielded=False)
        return Enqueuing(self._enqueue(job, options), job, caller_of(1))

    def named(self, job_type: str, arguments: Mapping[str, object]) -> Job[Any, Any]:
        """Make a job of a registered type. Raises UnknownJobType and InvalidInput."""
        checks.text(job_type, "job_type")
        return self._app_state.named_job(job_type, arguments)

    async def enqueue_many(
        self,
        jobs: Iterable[Job[S, G]],
        /,
        *,
        atomic: bool = True,
        connection: UserConnection | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> list[Handle[S, G]]:
        """Enqueue many jobs, in order: all or none (up to bounds.batch_jobs_max).

        With atomic=False, every job that the store accepts is enqueued. If it refuses some, because of a quota, a
        conflict or an unknown dependency, PartlyEnqueued is raised, which has the handle or the error of each job. With
        `connection` all jobs are enqueued in its transaction.
        """
        checked = _jobs(jobs)
        submissions = self._submissions(checked, options, atomic=atomic)
        if connection is not None:
            return self._handles(checked, submissions, await submit_within(self._app_state, connection, submissions))
        if atomic:
            return self._handles(checked, submissions, await self._app_state.submit(submissions))
        answers = await submit_in_part(self._app_state, submissions)
        new = [each for submission in submissions for each in submission.jobs]
        results = [
            answer if isinstance(answer, RopewalkError) else self._handle(job, as_stored, answer)
            for job, as_stored, answer in zip(checked, new, answers, strict=True)
        ]
        handles = [each for each in results if isinstance(each, Handle)]
        if len(handles) < len(results):
            raise partly_enqueued(checked, results)
        return handles

    def enqueue_here(
        self,
        jobs: Iterable[Job[S, G]],
        connection: UserConnection,
        portal: LoopThread,
        *,
        options: EnqueueOptions,
        atomic: bool = True,
    ) -> list[Handle[S, G]]:
        """Enqueues in the transaction of a blocking connection, for the blocking client. The connection is used in the
        calling thread, because it may belong to that thread."""
        checked = _jobs(jobs)
        submissions = self._submissions(checked, options, atomic=atomic)
        return self._handles(checked, submissions, submit_within_here(self._app_state, connection, submissions, portal))

    async def _enqueue_within(
        self, job: Job[S, G], connection: UserConnection, options: EnqueueOptions
    ) -> Handle[S, G]:
        [handle] = await self.enqueue_many([job], connection=connection, **options)
        return handle

    async def _enqueue(self, job: Job[S, G], options: EnqueueOptions) -> Handle[S, G]:
        new = self._new(job, options)
        skip = None
        if new.gate is None and skips_queue(job, options):
            skip = self._app_state.skip_slot(new)
        submission = Submission(jobs=[new], skip_queue=None if skip is None else skip[1])
        [[accepted]] = await self._app_state.submit([submission])
        if accepted.leased is not None and skip is not None:
            skip[0].adopt(accepted.leased)
        return self._handle(job, new, accepted)

    def _submissions(self, jobs: Sequence[Job[Any, Any]], options: EnqueueOptions, *, atomic: bool) -> list[Submission]:
        limit = self._app_state.bounds.batch_jobs_max
        if checks.flag(atomic, "atomic") and len(jobs) > limit:
            raise LimitExceeded(
                f"{len(jobs):,} jobs exceed batch_jobs_max={limit:,} for one atomic batch: use atomic=False",
                field="jobs",
            )
        new = [self._new(job, options) for job in jobs]
        size = limit if atomic else BATCH
        return [Submission(jobs=new[start : start + size]) for start in range(0, len(new), size)]

    def _handles(
        self, jobs: Sequence[Job[S, G]], submissions: Sequence[Submission], answers: Sequence[Sequence[Accepted]]
    ) -> list[Handle[S, G]]:
        new = chain.from_iterable(submission.jobs for submission in submissions)
        return [self._handle(*each) for each in zip(jobs, new, chain.from_iterable(answers), strict=True)]

    def _handle(self, job: Job[S, G], new: NewJob, accepted: Accepted) -> Handle[S, G]:
        """Returns a handle with a client of the job's tenant, which an option may have set to another one than this
        client's."""
        client = self if new.tenant == self._tenant else Client(self._app_state, new.tenant)
        return Handle(client, accepted.id, job.type, accepted=accepted)

    def _new(self, job: Job[Any, Any], options: EnqueueOptions) -> NewJob:
        new = self._app_state.new_job(job, options, self._tenant)
        if new.tenant != self._tenant:
            self._refuse_beyond(f"a job with tenant={new.tenant!r}")
        return new

    def handle(self, job_id: str, job_type: JobType[..., S, G]) -> Handle[S, G]:
        """Return a handle for a job that was enqueued elsewhere or earlier. Whether the job exists is not checked.

        The waits of the handle raise InvalidInput if the job is of another type.
        """
        checks.text(job_id, "job_id")
        checks.instance(job_type, "job_type", JobType, "a function decorated with @job")
        return Handle(self, job_id, job_type, is_type_known=False)


def job_to_enqueue(client: Client, job: object, arguments: object) -> Job[Any, Any]:
    """Returns the job to enqueue: the one that was passed, or a new one of the named type with these arguments."""
    if isinstance(job, str):
        return client.named(
            checks.text(job, "job"), cast("Mapping[str, object]", {} if arguments is None else arguments)
        )
    if arguments is not None:
        raise InvalidInput(
            f"arguments={shown(arguments)} is given beside {shown(job)}: arguments of a job go into the "
            'call that makes it, as in enqueue(mail(to="a@b.c")), and beside a name, as in '
            'enqueue("mail", {"to": "a@b.c"})',
            field="arguments",
        )
    return checked_job(job, "enqueue")


def _jobs(jobs: Iterable[Job[S, G]]) -> list[Job[S, G]]:
    if isinstance(jobs, list) and set(map(type, cast("list[object]", jobs))) == {Job}:
        return jobs.copy()  # This finds in a fifth of the time that nothing is wrong.
    return list(checks.several(jobs, "jobs", lambda each, field: checked_job(each, "enqueue_many", field)))
