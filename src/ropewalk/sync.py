"""The blocking face: the async client's own methods, run on one loop in one thread. A new verb costs one line."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Unpack,
    overload,
)
from weakref import WeakSet

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
from ropewalk.errors import PartlyEnqueued, RopewalkError
from ropewalk.observe.events import Event
from ropewalk.observe.metrics.metrics import Metrics
from ropewalk.observe.metrics.registry import Family
from ropewalk.ports.store.user_transactions import UserConnection

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)
S = TypeVar("S")
G = TypeVar("G")
S_co = TypeVar("S_co", covariant=True)
G_co = TypeVar("G_co", covariant=True)


WAITS_FOR_ITSELF: Final = (
    "this would block the loop that runs the worker, so the job could never end: await the async method"
)


class Portal:
    """One event loop in one daemon thread, started at first use; after a fork the child starts its own."""

    def __init__(self, core: AppState) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._streams = WeakSet[SyncEvents]()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._running_loop())

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            self._core.begin_use()
        except Warning:  # where the user turns warnings into errors
            work.close()
            raise
        return self.start(work).result()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """For calls that end only when a job does: refused where they would wait for themselves."""
        if self.would_wait_for_itself():
            work.close()
            raise RuntimeError(WAITS_FOR_ITSELF)
        return self.call(work)

    def would_wait_for_itself(self) -> bool:
        """Whether the thread that asks runs this app's worker."""
        try:
            return self._core.runs_worker_on(asyncio.get_running_loop())
        except RuntimeError:
            return False

    def listen(self, events: AsyncIterator[Event]) -> SyncEvents:
        """Events from now on, until they or this portal are closed."""
        stream = SyncEvents(events, self)
        self._streams.add(stream)
        return stream

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="ropewalk-sync", daemon=True)
                self._thread.start()
            return self._loop

    def stop_listening(self) -> None:
        for stream in list(self._streams):
            stream.close()

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


class _Mailbox:
    """Between the loop that events come from and the thread that takes them; a full one loses the oldest."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=10_000)
        self._changed = threading.Condition()
        self._ended = False

    async def fill(self, events: AsyncIterator[Event]) -> None:
        try:
            async for event in events:
                with self._changed:
                    self._events.append(event)
                    self._changed.notify()
        finally:
            self.end()

    def take(self) -> Event:
        """Waits for one. Raises StopIteration once there will be no more."""
        with self._changed:
            while not self._events:
                if self._ended:
                    raise StopIteration
                self._changed.wait()
            return self._events.popleft()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def clear(self) -> None:
        with self._changed:
            self._events.clear()


async def _answered() -> None:
    """What was started on the same loop before has begun once this is answered."""


class SyncEvents(Iterator[Event]):
    """Events for blocking code: each `next` waits for one. It listens from when it is made until it is closed.

    Closing it, from any thread, ends an iteration that waits; so does closing the app.

    >>> with app.sync.events() as events:
    ...     for event in events:
    ...         print(event.kind, event.job_id)
    """

    def __init__(self, events: AsyncIterator[Event], portal: Portal) -> None:
        self._portal = portal
        self._mailbox = _Mailbox()
        self._filling = portal.start(self._mailbox.fill(events))
        portal.call(_answered())
        if self._filling.done():
            self._filling.result()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        if self._portal.would_wait_for_itself():
            raise RuntimeError(WAITS_FOR_ITSELF)
        return self._mailbox.take()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_filling"):
            self._filling.cancel()

    def close(self) -> None:
        """Stop listening. Closing it again does nothing."""
        self._filling.cancel()
        self._mailbox.end()
        self._mailbox.clear()


class SyncHandle(Generic[S_co, G_co]):
    """A durable job, for blocking code."""

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

    def __repr__(self) -> str:
        return f"Sync{self._handle!r}"

    def result(self, timeout: Seconds | None = None) -> S_co:
        """The job's own result once it completed. Raises JobFailed, JobCancelled, WaitTimeout, NotFound."""
        return self._portal.wait(self._handle.result(timeout))

    def group(self, timeout: Seconds | None = None, *, raise_on_failure: bool = False) -> G_co:
        """The value of its group once nothing in it is open. Raises GroupFailed, WaitTimeout, NotFound."""
        return self._portal.wait(self._handle.group(timeout, raise_on_failure=raise_on_failure))

    def chain(self, timeout: Seconds | None = None) -> S_co:
        """The result of the last job of its chain. Raises like result()."""
        return self._portal.wait(self._handle.chain(timeout))

    def status(self) -> JobInfo:
        return self._portal.call(self._handle.status())

    def cancel(self, *, reason: str | None = None, force: bool = False) -> CancelStatus:
        return self._portal.call(self._handle.cancel(reason=reason, force=force))

    def events(self) -> SyncEvents:
        """Events of this job, as this process causes them, from now on."""
        return self._portal.listen(self._handle.events())


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
        """Queue many, in order: all or none; or with atomic=False all that can be, and PartlyEnqueued tells the rest.

        With `connection` all of them are in its transaction.
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
        return SyncHandle(self.client.handle(job_id, job_type), self.portal)

    def wait(self, job_id: str, timeout: Seconds | None = None) -> JobInfo:
        """The job once it is terminal, whatever way it ended."""
        return self.portal.wait(self.client.wait(job_id, timeout))

    def events(self, *, every_tenant: Literal[False] = False) -> SyncEvents:
        """What happens to jobs of this tenant in this process, after each commit, from now on."""
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

    def events(self, *, every_tenant: bool = False, failures_only: bool = False) -> SyncEvents:
        """What happens in this process, after each commit, from now on. Other processes' events are not here.

        failures_only: attempts and jobs that failed, expired or were lost; jobs that complete cost nothing then.
        """
        return self.portal.listen(self.client.events(every_tenant=every_tenant, failures_only=failures_only))

    workers = blocking(StoreClient.workers)
    drain_worker = blocking(StoreClient.drain_worker)
    quotas = blocking(StoreClient.quotas)
    set_limit = blocking(StoreClient.set_limit)
    remove_limit = blocking(StoreClient.remove_limit)
    limits = blocking(StoreClient.limits)
