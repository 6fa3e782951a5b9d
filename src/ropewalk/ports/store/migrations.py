"""The capability to show and update the schema of a store."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class SchemaState(Struct, frozen=True, kw_only=True):
    """Which migrations a store has had, and which it still needs."""

    applied: int
    """The number of the newest migration in the store; 0 if the store is empty."""
    newest: int
    """The number of the newest migration that this release knows."""
    missing: list[str]
    """The names of the migrations that are still to be applied, in order."""


class MigrationStore(Protocol):
    """A store with a schema. Opening it applies missing migrations, or fails if it was made with migrate=False."""

    async def schema(self) -> SchemaState:
        """Returns the state of the schema and changes nothing. Raises SchemaMismatch if a newer release made it."""
        ...

    async def migrate(self) -> SchemaState:
        """Applies all missing migrations or none, and returns the state before. Of two concurrent callers, the second
        one finds nothing missing."""
        ...

    async def ddl(self) -> str:
        """Returns the statements of the missing migrations, for somebody who runs them by hand."""
        ...
