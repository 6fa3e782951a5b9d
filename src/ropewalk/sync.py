"""The blocking face: the async client's own methods, run on one loop in one thread. A new verb costs one line."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, Unpack, overload

from ropewalk.client.app_state import AppState
from ropewalk.client.client import Client, job_to_enqueue
from ropewalk.client.handle import Handle
from ropewalk.client.store_client import StoreClient
from ropewalk.client.views.jobs import JobInfo
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.domain.jobs.operations import CancelStatus
from ropewalk.domain.time import Seconds
from ropewalk.observe.metrics.metrics import Metrics
from ropewalk.observe.metrics.registry import Family
from ropewalk.ports.store.user_transactions import UserConnection

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)
S = TypeVar("S")
G = TypeVar("G")


class Portal:
    """One event loop in one daemon thread, started at first use; after a fork the child starts its own."""

    def __init__(self, core: AppState) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._running_loop()).result()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """For calls that end only when a job does: refused where they would wait for themselves."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self.call(work)
        if self._core.runs_worker_on(loop):
            work.close()
            raise RuntimeError(
                "this would block the loop that runs the worker, so the job could never end: await the async method"
            )
        return self.call(work)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="ropewalk-sync", daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        with self._lock:
            if self._loop is not None and self._thread is not None and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()
            self._loop = None


class Face(Protocol[C_co]):
    """The blocking face of an async client."""

    @property
    def client(self) -> C_co: ...

    @property
    def portal(self) -> Portal: ...


class blocking(Generic[C, P, T]):  # noqa: N801 # used like a decorator
    """A descriptor that exposes an async method of a client as a blocking one: same name, types and docs."""

    def __init__(self, verb: Callable[Concatenate[C, P], Coroutine[Any, Any, T]]) -> None:
        self._verb = verb
        self.__doc__ = verb.__doc__

    def __get__(self, face: Face[C], owner: object) -> Callable[P, T]:
        @functools.wraps(self._verb)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return face.portal.call(self._verb(face.client, *args, **kwargs))

        return call


class SyncHandle(Generic[S, G]):
    """A durable job, for blocking code."""

    def __init__(self, handle: Handle[S, G], portal: Portal) -> None:
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

    def __repr__(self) -> str:
        return f"Sync{self._handle!r}"

    def result(self, timeout: Seconds | None = None) -> S:
        """The job's own result once it completed. Raises JobFailed, JobCancelled, WaitTimeout, NotFound."""
        return self._portal.wait(self._handle.result(timeout))

    def group(self, timeout: Seconds | None = None, *, raise_on_failure: bool = False) -> G:
        """The value of its group once nothing in it is open. Raises GroupFailed, WaitTimeout, NotFound."""
        return self._portal.wait(self._handle.group(timeout, raise_on_failure=raise_on_failure))

    def chain(self, timeout: Seconds | None = None) -> S:
        """The result of the last job of its chain. Raises like result()."""
        return self._portal.wait(self._handle.chain(timeout))

    def status(self) -> JobInfo:
        return self._portal.call(self._handle.status())

    def cancel(self, *, reason: str | None = None, force: bool = False) -> CancelStatus:
        return self._portal.call(self._handle.cancel(reason=reason, force=force))


class SyncClient:
    """`app.sync.tenant("acme")`: the verbs of a client that is bound to one tenant, blocking, from any thread."""

    def __init__(self, client: Client, portal: Portal) -> None:
        self._client = client
        self._portal = portal

    @property
    def client(self) -> Client:
        """The async client behind it."""
        return self._client

    @property
    def portal(self) -> Portal:
        """The loop that the async client runs on."""
        return self._portal

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Only for what is not there. What the app can do for all tenants is refused by name."""
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
        """Queue a job; returns once it is durable, or with `connection` once it is in that transaction."""
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
        """Queue many, in order: all or none, or in chunks with atomic=False; or all in `connection`'s transaction."""
        if connection is not None:
            handles = self.client.enqueue_here(jobs, connection, self.portal, options=options, atomic=atomic)
        else:
            handles = self.portal.call(self.client.enqueue_many(jobs, atomic=atomic, **options))
        return [SyncHandle(handle, self.portal) for handle in handles]

    def handle(self, job_id: str, job_type: JobType[..., S, G]) -> SyncHandle[S, G]:
        return SyncHandle(self.client.handle(job_id, job_type), self.portal)

    def wait(self, job_id: str, timeout: Seconds | None = None) -> JobInfo:
        """The job once it is terminal, whatever way it ended."""
        return self.portal.wait(self.client.wait(job_id, timeout))

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
        """Prometheus text, for a scrape."""
        return self._portal.call(self._metrics.text())

    def snapshot(self) -> list[Family]:
        """The same as data."""
        return self._portal.call(self._metrics.snapshot())


class SyncApp(SyncClient):
    """`app.sync`: the same verbs as `app`, blocking, from any thread."""

    def __init__(self, client: StoreClient, portal: Portal, metrics: Metrics) -> None:
        super().__init__(client, portal)
        self._store_client = client
        self.metrics = SyncMetrics(metrics, portal)

    @property
    def client(self) -> StoreClient:
        """The async client behind it."""
        return self._store_client

    def tenant(self, name: str) -> SyncClient:
        """The blocking client of another tenant, which can do nothing beyond that tenant."""
        return SyncClient(self.client.tenant(name), self.portal)

    workers = blocking(StoreClient.workers)
    drain_worker = blocking(StoreClient.drain_worker)
    quotas = blocking(StoreClient.quotas)
    set_limit = blocking(StoreClient.set_limit)
    remove_limit = blocking(StoreClient.remove_limit)
    limits = blocking(StoreClient.limits)
