"""Capability: jobs inside a transaction of the user's own: they exist if and only if it commits.

Which connections there are, a store knows. None of their packages is imported here or there: they are recognised by
the names of their types.

A transaction of the user's own on the store's database, in which a job completes: both happen, or neither.
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
    """Of sqlite3, psycopg, asyncpg or SQLAlchemy. Only as much of it as keeps a URL or an engine from being one."""

    @property
    def close(self) -> Callable[..., Any]: ...


Answers: TypeAlias = list[list[Accepted]]
"""one list a submission, one item a job"""
AfterCommit: TypeAlias = Callable[[Answers], None]


class Blocking(Struct, frozen=True):
    """On a connection whose calls block. `submit` runs in the thread that calls it, which must be the connection's."""

    submit: Callable[[Sequence[Submission], AfterCommit], Answers]


class Awaited(Struct, frozen=True):
    """On a connection that belongs to an event loop: `submit` is awaited on that loop."""

    submit: Callable[[Sequence[Submission], AfterCommit], Awaitable[Answers]]


Join: TypeAlias = Blocking | Awaited
"""How to submit into one user's transaction.

All of it or nothing: a refusal is raised, and leaves the transaction as it was. `AfterCommit` is called where the store
gets to know of the commit, and not at all where it does not; workers are woken by the commit in both cases, or find
the work by looking.
"""


SqlValues: TypeAlias = "Sequence[Any] | Mapping[str, Any]"


class UserTransaction(Protocol):
    """Begins with its first statement, so that nothing is locked before. Used by one task."""

    async def execute(self, sql: str, values: SqlValues = ()) -> list[tuple[Any, ...]]:
        """Run one statement; its rows. Raises WaitTimeout once the transaction was open for too long."""
        ...

    async def settle(self, owner: str, settlement: Settlement) -> Settlements:
        """The last statement, and the commit. A settlement that is stale or refused rolls everything back."""
        ...

    async def rollback(self) -> None:
        """Undo everything. Idempotent; after `settle` it does nothing."""
        ...


class UserTransactionStore(Protocol):
    """A store in a database that users share."""

    async def join(self, connection: UserConnection, submissions: Sequence[Submission]) -> Join:
        """Make sure of what these submissions need, in transactions of the store's own. Does not use the connection.

        Raises Unsupported for a connection that no store of this kind can use, InvalidInput for one that does not fit.
        """
        ...

    def transaction(self, limit_us: Span) -> UserTransaction:
        """For a user's own writes beside a settlement, open for at most so long."""
        ...
