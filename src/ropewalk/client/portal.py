"""The portal runs the async client for blocking code: on one event loop in a thread of its own, to which other threads
pass calls and from which they take events."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, Self, TypeVar
from weakref import WeakSet

from ropewalk.client.app_state import AppState
from ropewalk.errors import RopewalkError
from ropewalk.observe.events import Event

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)

WAITS_FOR_ITSELF: Final = (
    "this would block the loop that runs the worker, so the job could never end: await the async method"
)
TASKS_END_SECONDS: Final = 1.0
"""Tasks that still run on the loop when it is closed, such as hooks, get this long to end."""
CALLED_FROM_ITS_LOOP: Final = (
    "this code (a hook, for example) runs on the loop that app.sync would wait for: await the async method"
)
CLOSES_BENEATH_WORKER: Final = (
    "this would close the store of the worker that runs on this loop: stop the worker, then `await app.close()`"
)


class Portal:
    """One event loop in one daemon thread, which starts at the first use. After a fork, the child process starts its
    own."""

    def __init__(self, app_state: AppState) -> None:
        self._app_state = app_state
        self._streams = WeakSet[SyncEvents]()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        """A thread holds this lock while it starts a call or the loop, or ends them."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._calls = set[Future[Any]]()
        """The running calls that end when the store answers."""
        self._waits = set[Future[Any]]()
        """The running calls that end when a job ends, which may never happen."""
        self._ended = WeakSet[Future[Any]]()
        """The waits that were ended because the portal was closed."""

    def start(self, work: Coroutine[Any, Any, T], *, waits: bool = False) -> Future[T]:
        """Starts a coroutine on the loop. `waits` says that it ends only when a job does."""
        if self._is_own_thread():
            work.close()
            raise RuntimeError(CALLED_FROM_ITS_LOOP)
        with self._locked():
            call = asyncio.run_coroutine_threadsafe(work, self._running_loop())
            under_way = self._waits if waits else self._calls
            under_way.add(call)
        call.add_done_callback(under_way.discard)
        return call

    def call(self, work: Coroutine[Any, Any, T], *, waits: bool = False) -> T:
        """Runs a coroutine on the loop and returns its result."""
        try:
            self._app_state.begin_use()
        except Warning:  # The user may turn warnings into errors.
            work.close()
            raise
        call = self.start(work, waits=waits)
        try:
            return call.result()
        except CancelledError:
            if call not in self._ended:
                raise
            raise RopewalkError("app.sync was closed while this waited") from None

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine that ends only when a job does. Raises RuntimeError if the calling thread would have to run
        that job."""
        if self.would_wait_for_itself():
            work.close()
            raise RuntimeError(WAITS_FOR_ITSELF)
        return self.call(work, waits=True)

    def would_wait_for_itself(self) -> bool:
        """Whether the calling thread runs a worker of this app."""
        try:
            return self._app_state.runs_worker_on(asyncio.get_running_loop())
        except RuntimeError:
            return False

    def listen(self, events: AsyncIterator[Event]) -> SyncEvents:
        """Returns a stream of the events from now on, until it or the portal is closed."""
        stream = SyncEvents(events, self)
        self._streams.add(stream)
        return stream

    def open(self) -> None:
        """Opens the store, and closes the portal again if that fails."""
        try:
            self.call(self._app_state.open())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the store and ends the thread. Waits end with an error; other calls get their answers before.

        The next call starts a new thread and opens the store again.
        """
        if self._is_own_thread():
            raise RuntimeError(CALLED_FROM_ITS_LOOP)
        if self.would_wait_for_itself():
            raise RuntimeError(CLOSES_BENEATH_WORKER)
        self.stop_listening()
        with self._locked():
            if self._loop is None and not self._app_state.is_open:
                return
            loop = self._running_loop()
            for each in tuple(self._waits):
                self._ended.add(each)
                each.cancel()
            wait(tuple(self._calls))  # A call that is cancelled in the middle of a change might leave it half done.
            try:
                asyncio.run_coroutine_threadsafe(self._end(), loop).result()
            finally:
                self._stop(loop)

    async def _end(self) -> None:
        """Ends the tasks of the loop and closes the store. Tasks that read the store get a moment to end before."""
        try:
            if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(tasks, timeout=TASKS_END_SECONDS)
            await self._app_state.close()
        finally:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _stop(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._thread is not None, "the thread runs the loop"
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        loop.close()
        self._loop = self._thread = None

    def stop_listening(self) -> None:
        """Closes all streams of events."""
        for stream in list(self._streams):
            stream.close()

    @contextmanager
    def _locked(self) -> Generator[None]:
        if self._process != os.getpid():
            self._begin()  # A forked process has no such thread, and no thread that could release the lock.
        with self._lock:
            yield

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="ropewalk-sync", daemon=True)
            self._thread.start()
        return self._loop

    def _is_own_thread(self) -> bool:
        return threading.current_thread() is self._thread


class BlockingFace(Protocol[C_co]):
    """A blocking client: an async client, and the portal that runs it."""

    @property
    def client(self) -> C_co: ...

    @property
    def portal(self) -> Portal: ...


class blocking(Generic[C, P, T]):  # noqa: N801 # used like a decorator
    """A descriptor that makes a blocking method of an async method of a client, with the same name, types and docs."""

    def __init__(self, verb: Callable[Concatenate[C, P], Coroutine[Any, Any, T]]) -> None:
        self._verb = verb
        self.__doc__ = verb.__doc__

    def __get__(self, face: BlockingFace[C], owner: object) -> Callable[P, T]:
        @functools.wraps(self._verb)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return face.portal.call(self._verb(face.client, *args, **kwargs))

        return call


class _Mailbox:
    """A queue from the loop that sends events to the thread that reads them. If it is full, the oldest event is
    lost."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=10_000)
        self._changed = threading.Condition()
        self._ended = False

    async def fill(self, events: AsyncIterator[Event]) -> None:
        """Adds all events to the queue, and ends it after the last one."""
        try:
            async for event in events:
                with self._changed:
                    self._events.append(event)
                    self._changed.notify()
        finally:
            self.end()

    def take(self) -> Event:
        """Waits for the next event and returns it. Raises StopIteration if no more events will come."""
        with self._changed:
            while not self._events:
                if self._ended:
                    raise StopIteration
                self._changed.wait()
            return self._events.popleft()

    def end(self) -> None:
        """Has `take` raise StopIteration once the queue is empty."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def clear(self) -> None:
        """Removes the events that nobody has taken."""
        with self._changed:
            self._events.clear()


async def _answered() -> None:
    """When this has run, everything that was started on the same loop before has begun."""


class SyncEvents(Iterator[Event]):
    """An iterator over events for blocking code. Each `next` waits for an event. It receives events from the moment it
    is made until it is closed.

    An iteration that waits ends when any thread closes the iterator or the app.

    >>> with app.sync.events() as events:
    ...     for event in events:
    ...         print(event.kind, event.job_id)
    """

    def __init__(self, events: AsyncIterator[Event], portal: Portal) -> None:
        self._portal = portal
        self._mailbox = _Mailbox()
        self._filling = portal.start(self._mailbox.fill(events), waits=True)
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
        """Stop receiving events. Closing the iterator again does nothing."""
        self._filling.cancel()
        self._mailbox.end()
        self._mailbox.clear()
