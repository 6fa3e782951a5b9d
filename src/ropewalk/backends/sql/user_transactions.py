"""What every SQL store does inside a user's transaction, and how it tells one package's connections from another's.

Waiting for something that must not be left half-way, also by whoever is cancelled meanwhile.

Calls on one connection, one after another: two that crossed would take each other's savepoints back.
"""

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
    """Its answer. A cancellation goes on once it has ended; `when_cancelled` may hasten that."""
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
            done.exception()  # seen: the cancellation is the answer
        raise cancelled
    return done.result()


L = TypeVar("L")


class ConnectionLocks:
    def __init__(self) -> None:
        self._blocking: Locks[threading.Lock] = Locks(threading.Lock)
        self._awaited: Locks[asyncio.Lock] = Locks(asyncio.Lock)

    @contextmanager
    def blocking(self, connection: object) -> Generator[None]:
        with self._blocking.of(connection) as lock, lock:
            yield

    @asynccontextmanager
    async def awaited(self, connection: object) -> AsyncGenerator[None]:
        with self._awaited.of(connection) as lock:
            async with lock:
                yield


class Locks(Generic[L]):
    """A lock for each connection in use, by its identity: not every driver's can be referred to weakly."""

    def __init__(self, make: Callable[[], L]) -> None:
        self._make = make
        self._mutex = threading.Lock()
        self._held: dict[int, tuple[L, int]] = {}
        """with the number of those who hold it or wait for it"""

    @contextmanager
    def of(self, connection: object) -> Generator[L]:
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
    """All of them, or the first refusal is raised."""
    answers: Answers = []
    for answer in submission.submit(tx, tx.lanes, submissions, admit):
        if isinstance(answer, RopewalkError):
            raise answer
        answers.append(answer)
    return answers


def queues_served(submissions: Sequence[Submission], answers: Answers) -> list[str]:
    """The queues that got new work, in one order for the same ones."""
    pairs = zip(submissions, answers, strict=True)
    new = ((job, answer) for asked, given in pairs for job, answer in zip(asked.jobs, given, strict=True))
    return sorted({job.queue for job, answer in new if not answer.duplicate})


def kinds_of(connection: object, package: str) -> set[str]:
    """The names of its types that this package made; none: it is another's."""
    return {base.__name__ for base in type(connection).__mro__ if base.__module__.partition(".")[0] == package}


def unknown(connection: object, wanted: str) -> InvalidInput:
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
