"""The SQLite store: one file, several processes, durable through power loss. Start reading with store.py."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from ropewalk.backends.sqlite.store import SqliteStore as SqliteStore
from ropewalk.errors import InvalidInput
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.urls import masked, refuse_extras


def from_url(url: str, runtime: Runtime, *, allow_weaker_durability: bool, migrate: bool) -> SqliteStore:
    """Returns the store for `sqlite:///relative.db` or `sqlite:////absolute/path.db`."""
    parts = urlsplit(url)
    refuse_extras(url, parts.query + parts.fragment)
    if parts.netloc or not parts.path.startswith("/") or len(parts.path) < 2:
        raise InvalidInput(
            f"url={masked(url)!r} names no file: write sqlite:///jobs.db (relative) or sqlite:////var/lib/jobs.db",
            field="url",
        )
    path = unquote(parts.path[1:])
    return SqliteStore(path, runtime, allow_weaker_durability=allow_weaker_durability, migrate=migrate)
