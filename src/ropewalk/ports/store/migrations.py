"""Capability: the schema of a store that has one: what it is, what is missing, and how to bring it up to date."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class SchemaState(Struct, frozen=True, kw_only=True):
    applied: int
    """the newest migration in the store; 0 in an empty one"""
    newest: int
    """the newest one this release knows"""
    missing: list[str]
    """names of those still to be applied, in order"""


class MigrationStore(Protocol):
    """A store with a schema. Opening one migrates it, unless it was made with migrate=False: then it refuses."""

    async def schema(self) -> SchemaState:
        """Looks only: creates and changes nothing. Raises SchemaMismatch for a schema of a newer release."""
        ...

    async def migrate(self) -> SchemaState:
        """Apply what is missing, all of it or nothing; whoever comes second finds it done. How it was before."""
        ...

    async def ddl(self) -> str:
        """The statements of what is missing, for somebody who applies them by hand."""
        ...
