"""The blocking client runs the methods of the async client on one loop in one thread. A new method takes one line
here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, Unpack, overload

from ropewalk.client.client import Client, job_to_enqueue
from ropewalk.client.handle import Handle
from ropewalk.client.portal import Portal, SyncEvents, blocking
from ropewalk.client.store_client import StoreClient
from ropewalk.client.views.answers import CancelResult, SubmissionInfo
from ropewalk.client.views.jobs import JobInfo
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.domain.time import Seconds
from ropewalk.errors import PartlyEnqueued, RopewalkError
from ropewalk.observe.metrics.metrics import Metrics
from ropewalk.observe.metrics.values import Family
from ropewalk.ports.store.user_transactions import UserConnection

S = TypeVar("S")
G = TypeVar("G")
S_co = TypeVar("S_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)


class SyncHandle(Generic[S_co, G_co]):
    """A reference to a durable job, for blocking code."""

    def __init__(self, handle: Handle[S_co, G_co], portal: Portal) -> None:
        self._handle = handle
        self._portal = portal

    @property
    def id(self) -> str:
        return self._handle.id

    @property
    def group_id(self) -> str:
        return self._handle.group_id

    @property
    def duplicate(self) -> bool:
        return self._handle.duplicate

    @property
    def ignored(self) -> tuple[str, ...]:
        return self._handle.ignored

    @property
    def submission(self) -> SubmissionInfo | None:
        return self._handle.submission

    def __repr__(self) -> str:
        return f"Sync{self._handle!r}"

    def result(self, timeout: Seconds | None = None) -> S_co:
        """Wait until the job has completed and return its result. Raises JobFailed, JobCancelled, WaitTimeout,
        NotFound."""
        return self._portal.wait(self._handle.result(timeout))

    def group(self, timeout: Seconds | None = None, *, raise_on_failure: bool = False) -> G_co:
        """Wait until its group has closed and return the value of the group. Raises GroupFailed, WaitTimeout,
        NotFound."""
        return self._portal.wait(self._handle.group(timeout, raise_on_failure=raise_on_failure))

    def chain(self, timeout: Seconds | None = None) -> S_co:
        """Wait for the end of its chain and return the result of the last job. Raises like result()."""
        return self._portal.wait(self._handle.chain(timeout))

    def status(self) -> JobInfo:
        """Return the job as it is now. Raises NotFound."""
        return self._portal.call(self._handle.status())

    def cancel(self, *, reason: str | None = None, force: bool = False) -> CancelResult:
        """Cancel the job. For the options see `app.cancel`."""
        return self._portal.call(self._handle.cancel(reason=reason, force=force))

    def events(self) -> SyncEvents:
        """Return an iterator over the events about this job that this process causes, from now on."""
        return self._portal.listen(self._handle.events())


class SyncClient:
    """The blocking client of one tenant, which `app.sync.tenant("acme")` returns. Any thread may use it."""

    def __init__(self, client: Client, portal: Portal) -> None:
        self._client = client
        self._portal = portal

    @property
    def client(self) -> Client:
        """The async client that it runs."""
        return self._client

    @property
    def portal(self) -> Portal:
        """The portal with the event loop that runs the async client."""
        return self._portal

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Raises BeyondTenant, instead of AttributeError, for a method that only the client of the app has."""
            if not name.startswith("_") and hasattr(SyncApp, name):
                getattr(self._client, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @overload
    def enqueue(
        self, job: Job[S, G], /, *, connection: UserConnection | None = None, **options: Unpack[EnqueueOptions]
    ) -> SyncHandle[S, G]: ...

    @overload
    def enqueue(
        self,
        job: str,
        arguments: Mapping[str, object],
        /,
        *,
        connection: UserConnection | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> SyncHandle[Any, Any]: ...

    def enqueue(
        self,
        job: Job[Any, Any] | str,
        arguments: Mapping[str, object] | None = None,
        /,
        *,
        connection: UserConnection | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> SyncHandle[Any, Any]:
        """Enqueue a job. Returns when it is durable, or, with `connection`, when it is in that transaction."""
        job = job_to_enqueue(self.client, job, arguments)
        if connection is not None:
            [handle] = self.enqueue_many([job], connection=connection, **options)
            return handle
        return SyncHandle(self.portal.call(self.client.enqueue(job, **options)), self.portal)

    def enqueue_many(
        self,
        jobs: Iterable[Job[S, G]],
        /,
        *,
        atomic: bool = True,
        connection: UserConnection | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> list[SyncHandle[S, G]]:
        """Enqueue many jobs, in order: all or none.

        With atomic=False, every job that the store accepts is enqueued; if it refuses some, PartlyEnqueued has the
        handle or the error of each job. With `connection` all jobs are enqueued in its transaction.
        """
        if connection is not None:
            handles = self.client.enqueue_here(jobs, connection, self.portal, options=options, atomic=atomic)
        else:
            try:
                handles = self.portal.call(self.client.enqueue_many(jobs, atomic=atomic, **options))
            except PartlyEnqueued as error:
                error.results = tuple(self._blocking(each) for each in error.results)
                raise
        return [SyncHandle(handle, self.portal) for handle in handles]

    def _blocking(self, result: Handle[Any, Any] | RopewalkError) -> SyncHandle[Any, Any] | RopewalkError:
        return result if isinstance(result, RopewalkError) else SyncHandle(result, self.portal)

    def handle(self, job_id: str, job_type: JobType[..., S, G]) -> SyncHandle[S, G]:
        """Return a handle for a job that was enqueued elsewhere or earlier. Whether the job exists is not checked."""
        return SyncHandle(self.client.handle(job_id, job_type), self.portal)

    def wait(self, job_id: str, timeout: Seconds | None = None) -> JobInfo:
        """Wait until the job has ended, however it ended, and return it. Raises NotFound and WaitTimeout."""
        return self.portal.wait(self.client.wait(job_id, timeout))

    def events(self, *, every_tenant: Literal[False] = False) -> SyncEvents:
        """Return an iterator over the events about jobs of this tenant in this process, from now on."""
        return self.portal.listen(self.client.events(every_tenant=every_tenant))

    get = blocking(Client.get)
    states = blocking(Client.states)
    search = blocking(Client.search)
    count = blocking(Client.count)
    workflow = blocking(Client.workflow)
    history = blocking(Client.history)
    failure = blocking(Client.failure)
    failures = blocking(Client.failures)
    failure_counts = blocking(Client.failure_counts)
    logs = blocking(Client.logs)
    why = blocking(Client.why)
    queues = blocking(Client.queues)
    now = blocking(Client.now)
    stats = blocking(Client.stats)
    cancel = blocking(Client.cancel)
    cancel_many = blocking(Client.cancel_many)
    retry = blocking(Client.retry)
    retry_many = blocking(Client.retry_many)
    trigger = blocking(Client.trigger)
    update = blocking(Client.update)
    delete = blocking(Client.delete)
    delete_many = blocking(Client.delete_many)
    delete_chain = blocking(Client.delete_chain)
    purge = blocking(Client.purge)
    complete = blocking(Client.complete)
    fail = blocking(Client.fail)
    signal = blocking(Client.signal)
    group = blocking(Client.group)
    cancel_group = blocking(Client.cancel_group)
    chain = blocking(Client.chain)
    pause = blocking(Client.pause)
    resume = blocking(Client.resume)
    once = blocking(Client.once)
    schedules = blocking(Client.schedules)
    get_schedule = blocking(Client.get_schedule)
    create_schedule = blocking(Client.create_schedule)
    edit_schedule = blocking(Client.edit_schedule)
    pause_schedule = blocking(Client.pause_schedule)
    resume_schedule = blocking(Client.resume_schedule)
    trigger_schedule = blocking(Client.trigger_schedule)
    delete_schedule = blocking(Client.delete_schedule)
    set_limit = blocking(Client.set_limit)
    remove_limit = blocking(Client.remove_limit)
    limits = blocking(Client.limits)
    set_quota = blocking(Client.set_quota)
    remove_quota = blocking(Client.remove_quota)
    quota = blocking(Client.quota)


class SyncMetrics:
    """`app.metrics`, for blocking code."""

    def __init__(self, metrics: Metrics, portal: Portal) -> None:
        self._metrics = metrics
        self._portal = portal

    def text(self) -> str:
        """Return the metrics as Prometheus text."""
        return self._portal.call(self._metrics.text())

    def snapshot(self) -> list[Family]:
        """Return the metrics as data."""
        return self._portal.call(self._metrics.snapshot())


class SyncApp(SyncClient):
    """`app.sync` has the methods of `app`, blocking, for any thread.

    >>> with app.sync as client:      # opens the store, and closes it at the end
    ...     client.enqueue(add(1, 2))
    """

    def __init__(self, client: StoreClient, portal: Portal, metrics: Metrics) -> None:
        super().__init__(client, portal)
        self._store_client = client
        self.metrics = SyncMetrics(metrics, portal)

    @property
    def client(self) -> StoreClient:
        """The async client that it runs."""
        return self._store_client

    def __enter__(self) -> Self:
        self.portal.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store and end the thread of the blocking client. Using the app again opens it again.

        Threads that wait for a job get a RopewalkError, and iterations over events end.
        """
        self.portal.close()

    def tenant(self, name: str) -> SyncClient:
        """Return the blocking client of another tenant, which cannot reach any other tenant."""
        return SyncClient(self.client.tenant(name), self.portal)

    def events(self, *, every_tenant: bool = False, failures_only: bool = False) -> SyncEvents:
        """Return an iterator over the events of this process, from now on. Events of other processes are not among
        them.

        failures_only: only events about attempts and jobs that failed, expired or were lost; a job that completes then
            costs nothing.
        """
        return self.portal.listen(self.client.events(every_tenant=every_tenant, failures_only=failures_only))

    workers = blocking(StoreClient.workers)
    drain_worker = blocking(StoreClient.drain_worker)
    quotas = blocking(StoreClient.quotas)
    set_limit = blocking(StoreClient.set_limit)
    remove_limit = blocking(StoreClient.remove_limit)
    limits = blocking(StoreClient.limits)
