"""The capability to submit and complete jobs inside transactions of users.

A job that is submitted on a connection of the user's exists if and only if the user's transaction commits. A handler
can also make a transaction of its own on the database of the store, in which its job completes: either both happen, or
neither.

A store knows which connections it can use. It imports none of their packages, because it recognises the connections by
the names of their types.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.time import Span
from ropewalk.ports.store.leases import Settlements
from ropewalk.ports.store.submission import Accepted, Submission


class UserConnection(Protocol):
    """A connection of sqlite3, psycopg, asyncpg or SQLAlchemy. The protocol only excludes what is clearly none, such as
    a URL or an engine."""

    @property
    def close(self) -> Callable[..., Any]: ...


Answers: TypeAlias = list[list[Accepted]]
"""One list for each submission, with one item for each job."""
AfterCommit: TypeAlias = Callable[[Answers], None]


class Blocking(Struct, frozen=True):
    """Submits on a connection whose calls block. `submit` must be called in the thread of the connection."""

    submit: Callable[[Sequence[Submission], AfterCommit], Answers]


class Awaited(Struct, frozen=True):
    """Submits on a connection that belongs to an event loop. `submit` is awaited on that loop."""

    submit: Callable[[Sequence[Submission], AfterCommit], Awaitable[Answers]]


Join: TypeAlias = Blocking | Awaited
"""The way to submit into the transaction of one user.

Everything is submitted or nothing: a refusal is raised and leaves the transaction as it was. `AfterCommit` is called if
the store learns of the commit. If it does not, the database wakes the workers, or they find the jobs when they look.
"""


SqlValues: TypeAlias = "Sequence[Any] | Mapping[str, Any]"


class UserTransaction(Protocol):
    """A transaction of a handler. It begins with its first statement, so that nothing is locked before, and is used by
    one task."""

    async def execute(self, sql: str, values: SqlValues = ()) -> list[tuple[Any, ...]]:
        """Runs one statement and returns its rows. Raises WaitTimeout if the transaction has been open for too long."""
        ...

    async def settle(self, owner: str, settlement: Settlement) -> Settlements:
        """Settles the attempt and commits. If the settlement is stale or refused, everything is rolled back."""
        ...

    async def rollback(self) -> None:
        """Rolls everything back. After `settle`, or a second time, this does nothing."""
        ...


class UserTransactionStore(Protocol):
    """A store in a database that users share."""

    async def join(self, connection: UserConnection, submissions: Sequence[Submission]) -> Join:
        """Prepares what these submissions need, in transactions of the store itself, without using the connection.

        Raises Unsupported if no store of this kind can use the connection, and InvalidInput if it does not fit.
        """
        ...

    def transaction(self, limit_us: Span) -> UserTransaction:
        """Returns a transaction for the writes of a handler, which ends with a settlement. It may be open this long."""
        ...
