"""The PostgreSQL store: many processes and machines, durable through power loss. Start reading with store.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ropewalk.errors import InvalidInput
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.urls import masked

if TYPE_CHECKING:
    from ropewalk.backends.postgres.store import PostgresStore as PostgresStore


def from_url(url: str, runtime: Runtime, *, allow_weaker_durability: bool, migrate: bool) -> PostgresStore:
    """Returns the store for a URL as libpq reads it, with `schema` and `notify` among its options."""
    try:
        from ropewalk.backends.postgres.store import PostgresStore
    except ImportError as error:
        raise InvalidInput(
            f"url={masked(url)!r} needs the driver psycopg ({error}): pip install 'ropewalk[postgres]'", field="url"
        ) from error
    return PostgresStore(url, runtime, allow_weaker_durability=allow_weaker_durability, migrate=migrate)


def __getattr__(name: str) -> Any:
    """Imports the store when it is first used, so that `from_url` can report a missing driver."""
    if name == "PostgresStore":
        from ropewalk.backends.postgres.store import PostgresStore

        return PostgresStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
