"""The transaction in which a handler writes its own rows and completes its job, on a connection of its own.

It begins with its first statement. It is rolled back if it takes longer than its limit, because others wait for what it
has locked. Each store has a subclass that opens the connection and runs the statements.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.time import SECOND, Span
from ropewalk.errors import InvalidInput, WaitTimeout
from ropewalk.ports.runtime import Runtime, Timer
from ropewalk.ports.store.leases import Settlements
from ropewalk.ports.store.user_transactions import SqlValues, UserTransaction


class Closable(Protocol):
    """A connection of any driver: closing it undoes what was not committed."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)
T = TypeVar("T")


class HandlerTransaction(UserTransaction, ABC, Generic[C]):
    """The parts of such a transaction that are the same in every SQL store."""

    _driver_errors: type[Exception]
    """The base class of the driver's errors."""
    _reason_for_limit: str
    """Why the transaction must not take long, as a part of an error message."""

    def __init__(self, runtime: Runtime, *, limit_us: Span) -> None:
        self._runtime = runtime
        self._limit_us = limit_us
        self._db: C | None = None
        self._timer: Timer | None = None
        self._one_at_a_time = threading.Lock()
        self._too_long = False
        self._over = False

    async def execute(self, sql: str, values: SqlValues = ()) -> list[tuple[Any, ...]]:
        return await self._in_thread(lambda db: self._execute(db, sql, values), of_user=True)

    async def settle(self, owner: str, settlement: Settlement) -> Settlements:
        try:
            return await self._in_thread(lambda db: self._settle(db, owner, settlement))
        finally:
            await self.rollback()

    async def rollback(self) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._db is not None:
            await self._runtime.in_thread(self._close)

    @abstractmethod
    def _begin(self) -> C:
        """Opens a connection and begins a transaction on it."""

    @abstractmethod
    def _run(self, db: C, sql: str, values: SqlValues) -> list[tuple[Any, ...]]:
        """Runs a statement of the user and returns its rows."""

    @abstractmethod
    def _is_open(self, db: C) -> bool:
        """Whether the transaction is still open after a statement of the user."""

    @abstractmethod
    def _settle(self, db: C, owner: str, settlement: Settlement) -> Settlements:
        """Settles the attempt and ends the transaction."""

    @abstractmethod
    def _give_up(self) -> None:
        """Interrupts the statement that may be running in a thread, and rolls back. This is called on the event loop
        when the time is over; it sets `_too_long`."""

    @abstractmethod
    def _translated(self, error: Exception, *, of_user: bool) -> Exception:
        """Returns the error that the caller gets for an error of the driver."""

    async def _in_thread(self, work: Callable[[C], T], *, of_user: bool = False) -> T:
        if self._timer is None and not self._over:
            self._timer = self._runtime.after(self._limit_us / SECOND, self._give_up)
        return await self._runtime.in_thread(lambda: self._work(work, of_user=of_user))

    def _work(self, work: Callable[[C], T], *, of_user: bool) -> T:
        with self._one_at_a_time:
            self._check_open()
            try:
                if self._db is None:
                    self._db = self._begin()
                return work(self._db)
            except self._driver_errors as error:
                self._check_open()  # If the statement was interrupted, this raises the reason.
                translation = self._translated(error, of_user=of_user)
                if translation is error:
                    raise
                raise translation from error

    def _check_open(self) -> None:
        if self._too_long:
            raise WaitTimeout(
                f"the transaction was open for more than {self._limit_us / SECOND:g} s and is rolled back: "
                f"{self._reason_for_limit}; do slow work before it"
            )
        if self._over:
            raise InvalidInput("this transaction is over: it ends with its `async with` block")

    def _execute(self, db: C, sql: str, values: SqlValues) -> list[tuple[Any, ...]]:
        rows = self._run(db, sql, values)
        if not self._is_open(db):
            self._over = True
            raise InvalidInput(f"{sql!r} ended the transaction: leave COMMIT and ROLLBACK to ropewalk", field="sql")
        return rows

    def _close(self) -> None:
        with self._one_at_a_time:
            db, self._db = self._db, None
            if db is not None:
                db.close()
