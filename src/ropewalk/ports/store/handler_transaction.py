"""A transaction of the user's own on the store's database, in which a job completes: both happen, or neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from ropewalk.domain.jobs.transition import Settlement
from ropewalk.ports.store.messages import Settlements

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
