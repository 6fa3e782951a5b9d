"""What every SQL store needs for jobs that are submitted in a user's transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, TypeVar

from ropewalk.backends.sql import submission
from ropewalk.backends.sql.submission import Admit
from ropewalk.backends.sql.tx import Tx
from ropewalk.errors import InvalidInput, RopewalkError
from ropewalk.ports.store.submission import Submission
from ropewalk.ports.store.user_transactions import Answers

T = TypeVar("T")


async def run_to_completion(work: Awaitable[T], when_cancelled: Callable[[], None] | None = None) -> T:
    """Waits until the work has ended, even if the caller is cancelled, because it must not be left half done. Returns
    its result. The cancellation goes on after the end; `when_cancelled` may bring the end about sooner."""
    done = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError as error:
            cancelled = error
            if when_cancelled is not None:
                when_cancelled()
    if cancelled is not None:
        if not done.cancelled():
            done.exception()  # This marks its error as retrieved: the cancellation is raised instead.
        raise cancelled
    return done.result()


L = TypeVar("L")


class ConnectionLocks:
    """Lets calls on one connection run one after another: two at a time would roll back each other's savepoints."""

    def __init__(self) -> None:
        self._blocking: Locks[threading.Lock] = Locks(threading.Lock)
        self._awaited: Locks[asyncio.Lock] = Locks(asyncio.Lock)

    @contextmanager
    def blocking(self, connection: object) -> Generator[None]:
        """Lets one thread at a time use this connection."""
        with self._blocking.of(connection) as lock, lock:
            yield

    @asynccontextmanager
    async def awaited(self, connection: object) -> AsyncGenerator[None]:
        """Lets one task at a time use this connection."""
        with self._awaited.of(connection) as lock:
            async with lock:
                yield


class Locks(Generic[L]):
    """One lock for each connection in use, by the connection's identity, because not every driver allows weak
    references."""

    def __init__(self, make: Callable[[], L]) -> None:
        self._make = make
        self._mutex = threading.Lock()
        self._held: dict[int, tuple[L, int]] = {}
        """The locks, each with the number of callers that have it or wait for it."""

    @contextmanager
    def of(self, connection: object) -> Generator[L]:
        """Yields the lock of a connection."""
        lock = self._count(id(connection), 1)
        try:
            yield lock
        finally:
            self._count(id(connection), -1)

    def _count(self, key: int, change: int) -> L:
        with self._mutex:
            lock, users = self._held.pop(key) if key in self._held else (self._make(), 0)
            if users + change > 0:
                self._held[key] = lock, users + change
        return lock


def submit_all(tx: Tx, submissions: Sequence[Submission], admit: Admit) -> Answers:
    """Submits all jobs, or raises the first refusal."""
    answers: Answers = []
    for answer in submission.submit(tx, tx.lanes, submissions, admit):
        if isinstance(answer, RopewalkError):
            raise answer
        answers.append(answer)
    return answers


def queues_served(submissions: Sequence[Submission], answers: Answers) -> list[str]:
    """Returns the queues that got new jobs, sorted."""
    pairs = zip(submissions, answers, strict=True)
    new = ((job, answer) for asked, given in pairs for job, answer in zip(asked.jobs, given, strict=True))
    return sorted({job.queue for job, answer in new if not answer.duplicate})


def kinds_of(connection: object, package: str) -> set[str]:
    """Returns the names of those types of a connection that a package defines; none if it comes from another
    package."""
    return {base.__name__ for base in type(connection).__mro__ if base.__module__.partition(".")[0] == package}


def unknown(connection: object, wanted: str) -> InvalidInput:
    """Returns the error for a connection that the store cannot use."""
    kind = type(connection)
    if kind.__name__.endswith("Cursor"):
        return InvalidInput(
            f"connection={kind.__module__}.{kind.__qualname__} is a cursor: pass the connection that it belongs to",
            field="connection",
        )
    return InvalidInput(
        f"connection={kind.__module__}.{kind.__qualname__} is none this store can join: pass {wanted}",
        field="connection",
    )
