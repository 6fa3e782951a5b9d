"""A connection thread owns one database connection and does the work that callers on any event loop ask it to do.

The runtime starts the thread, which runs a coroutine on an event loop of its own: under a fake clock or a simulator it
is a task, and every request runs at one point of virtual time. The thread starts with the first request, serves all
requests that have gathered meanwhile together, and ends with `stop`. Each store defines how requests are served.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Generic, TypeVar

from ropewalk.backends.sql.damage import DamagedJobs, careful, may_be_damage
from ropewalk.backends.sql.forking import follow_forks
from ropewalk.backends.sql.maintenance import set_aside
from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.workflow.culprit import Culprit, culprit_of
from ropewalk.errors import StoreRefused, StoreUnavailable
from ropewalk.ports.runtime import Runtime, Task
from ropewalk.ports.store.consequences import Consequences, PassedOver

T = TypeVar("T")


class Request(Generic[T]):
    """Work for a connection thread. It is made on the event loop that waits for the answer, and answered by the
    thread."""

    __slots__ = ("_error", "_value", "answer", "last", "loop", "work")

    def __init__(self, work: Callable[[Tx], T], *, last: bool = False) -> None:
        self.work = work
        self.last = last
        """Whether the thread ends with this request."""
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[T] = self.loop.create_future()
        self._value: T | None = None
        self._error: BaseException | None = None

    @property
    def wanted(self) -> bool:
        """Whether the caller still waits for the answer."""
        return not self.answer.cancelled()

    @property
    def failed(self) -> bool:
        return self._error is not None

    def succeed(self, value: T) -> None:
        """Makes a value the answer."""
        self._value = value

    def fail(self, error: BaseException) -> None:
        """Makes an error the answer. A future refuses StopIteration, so another error takes its place."""
        if isinstance(error, StopIteration):  # a future refuses it, which would end the thread for everybody
            replacement = RuntimeError("work in a transaction raised StopIteration")
            replacement.__cause__, error = error, replacement
        self._error = error

    def settle(self) -> None:
        """Gives the answer to the caller. This runs on the event loop that waits for it."""
        if self.answer.done():
            return
        if self._error is not None:
            self.answer.set_exception(self._error)
        else:
            self.answer.set_result(self._value)  # type: ignore[arg-type]  # None only where T is


def deliver(requests: Iterable[Request[Any]]) -> None:
    """Gives the answers to the callers, by one call into each event loop and not by one for each request."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Request[Any]]] = {}
    for request in requests:
        by_loop.setdefault(request.loop, []).append(request)
    here = _running_loop()
    for loop, answered in by_loop.items():
        if loop is here:
            _settle(answered)
            continue
        try:
            loop.call_soon_threadsafe(_settle, answered)
        except RuntimeError:
            continue  # The event loop is closed, so nobody waits any more.


def _settle(answered: list[Request[Any]]) -> None:
    for request in answered:
        request.settle()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


SERVED_TOGETHER_MAX: Final = 256
PASSED_OVER_MAX: Final = 100
"""One piece of work passes over this many records at most. Each costs a transaction; if there are more, the code is at
fault and not the records."""
REPORTED_EVERY_SECONDS: Final = 60.0
"""It is reported only this often that one record is passed over."""
SET_ASIDE_ROUNDS_MAX: Final = 1000
"""One piece of work sets aside this many batches of damaged jobs at most."""


class ConnectionThread(ABC):
    """A thread with one connection; each store derives its own."""

    _only_reads = False
    """Whether the work of this thread only reads, so that it must not set damaged jobs aside."""

    def __init__(self, runtime: Runtime, name: str) -> None:
        self.on_aside: Callable[[Consequences], object] = lambda _: None
        """This is called with the consequences of setting jobs aside, and with the records that were passed over."""
        self._reported_until: dict[Culprit, float] = {}
        """For each record that was passed over, the monotonic time until which this is not reported again."""
        self._runtime = runtime
        self._name = name
        self._begin_anew()
        follow_forks(self)

    def _begin_anew(self) -> None:
        """Sets the state of a thread that has not started, also after a fork in the child."""
        self._busy = threading.Lock()
        """This lock is held while the connection is in use."""
        self._lock = threading.Lock()
        """This lock guards the attributes below."""
        self._waiting: deque[Request[Any]] = deque()
        self._thread: Task | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awake: asyncio.Event | None = None

    async def ask(self, work: Callable[[Tx], T]) -> T:
        """Has the thread run `work` inside a transaction, and returns its answer. If the work met a damaged row, the
        thread runs it again and reads carefully."""
        try:
            return await self._ask_once(work)
        except Exception as error:
            if not (self._met_damage(error) or may_be_damage(error)):
                raise
        return await self._ask_carefully(work)

    async def _ask_once(self, work: Callable[[Tx], T]) -> T:
        request = Request(work)
        self._put(request)
        return await request.answer

    async def _ask_carefully(self, work: Callable[[Tx], T]) -> T:
        """Runs work that met damaged rows. Work that only reads gets damaged jobs as far as they can be read; before
        other work runs again, the damaged jobs are set aside.

        Work may run twice because a transaction that failed has changed nothing.
        """
        met: frozenset[int] = frozenset()
        left: frozenset[int] = frozenset()
        for _ in range(SET_ASIDE_ROUNDS_MAX):
            try:
                return await self._ask_passing_over(work, None if self._only_reads else left)
            except DamagedJobs as damaged:
                met = damaged.seqs
            left |= met - await self._set_aside(met)
        raise StoreRefused(f"{self._name}: the rows of jobs {sorted(met)} cannot be read, nor set aside: repair them")

    async def _ask_passing_over(self, work: Callable[[Tx], T], known: frozenset[int] | None) -> T:
        """Runs work that reads carefully and leaves a record as it is if changing it raised an unexpected error."""
        passed_over: dict[Culprit, Exception] = {}
        while True:
            try:
                answer = await self._ask_once(careful(work, known, passed_over))
            except Exception as error:
                culprit = culprit_of(error)
                if culprit is None or culprit in passed_over or len(passed_over) == PASSED_OVER_MAX:
                    raise
                passed_over[culprit] = error
            else:
                self._report_passed_over(passed_over)
                return answer

    def _report_passed_over(self, passed_over: Mapping[Culprit, Exception]) -> None:
        """Reports the records that were passed over, but not again with every try."""
        now = self._runtime.monotonic()
        self._reported_until = {culprit: until for culprit, until in self._reported_until.items() if until > now}
        news = [PassedOver(each.name, error) for each, error in passed_over.items() if each not in self._reported_until]
        if news:
            self._reported_until = dict.fromkeys(passed_over, now + REPORTED_EVERY_SECONDS) | self._reported_until
            self.on_aside(Consequences(passed_over=news))

    async def _set_aside(self, seqs: frozenset[int]) -> frozenset[int]:
        """Sets these damaged jobs aside, together with damaged jobs that wait for them or for which they wait. Returns
        those that were set aside."""
        while True:
            try:
                aside = await self._ask_passing_over(partial(_set_aside, seqs), seqs)
            except DamagedJobs as others:
                seqs |= others.seqs
            else:
                self.on_aside(aside)
                return frozenset(moved.job.seq for moved in aside.moved)

    @abstractmethod
    def _met_damage(self, error: Exception) -> bool:
        """Whether a statement failed because of junk in a row, or what it answered could not be decoded."""

    async def stop(self) -> None:
        """Answers the requests so far, closes the connection and ends the thread. A later request starts it again."""
        thread = self._thread
        if thread is not None:
            last = Request(_nothing, last=True)
            self._put(last)
            await last.answer
            await thread.finished()

    @abstractmethod
    async def _serve(self, requests: list[Request[Any]]) -> None:
        """Runs the work of these requests and answers every one of them."""

    @abstractmethod
    def _disconnect(self) -> None: ...

    def before_fork(self) -> None:
        self._busy.acquire()
        self._disconnect()

    def after_fork_in_parent(self) -> None:
        self._busy.release()

    def after_fork_in_child(self) -> None:
        self._begin_anew()

    def _put(self, request: Request[Any]) -> None:
        """Adds a request, and starts or wakes the thread."""
        with self._lock:
            self._waiting.append(request)
            if self._thread is None or (self._loop is not None and self._loop.is_closed()):
                self._loop = None
                self._thread = self._runtime.thread(self._main, name=self._name)
            elif self._loop is not None and self._awake is not None and len(self._waiting) == 1:
                self._loop.call_soon_threadsafe(self._awake.set)

    async def _main(self) -> None:
        awake = asyncio.Event()
        with self._lock:
            self._loop, self._awake = asyncio.get_running_loop(), awake
        try:
            while not await self._round(awake):
                pass
        except BaseException:
            self._abandon()
            raise

    async def _round(self, awake: asyncio.Event) -> bool:
        """Serves the requests that are there, or waits for one. Returns True if the thread has to end."""
        with self._lock:
            count = min(len(self._waiting), SERVED_TOGETHER_MAX)
            requests = [self._waiting.popleft() for _ in range(count)]
        if not requests:
            await awake.wait()
            awake.clear()
            return False
        await self._serve_or_refuse([each for each in requests if each.wanted and not each.last])
        last = [each for each in requests if each.last]
        return bool(last) and self._end(last)

    async def _serve_or_refuse(self, requests: list[Request[Any]]) -> None:
        """Serves these requests. If the thread is ended meanwhile, they are refused."""
        try:
            if requests:
                await self._serve(requests)
        except BaseException:
            self._refuse(requests)
            raise

    def _end(self, last: Iterable[Request[None]]) -> bool:
        """Closes the connection. Returns False if there are new requests meanwhile, which are served before the thread
        ends."""
        with self._busy:
            self._disconnect()
        with self._lock:
            if self._waiting:
                self._waiting.extend(last)
                return False
            self._thread = None
        deliver(last)
        return True

    def _abandon(self) -> None:
        """Refuses all requests, because the thread was ended from outside and their callers must not wait for ever."""
        with self._busy:
            self._disconnect()
        with self._lock:
            self._thread = None
            left, self._waiting = list(self._waiting), deque()
        self._refuse(left)

    def _refuse(self, requests: list[Request[Any]]) -> None:
        """Answers these requests by an error, because the thread was stopped."""
        for request in requests:
            request.fail(StoreUnavailable(f"{self._name} was stopped before it could answer: try again"))
        deliver(requests)


def _set_aside(seqs: frozenset[int], tx: Tx) -> Consequences:
    return set_aside(tx, tx.lanes, seqs)


def _nothing(_: Tx) -> None:
    """The work of a last request, which is answered when the connection is closed."""
