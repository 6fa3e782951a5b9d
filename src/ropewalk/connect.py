"""URL → backend. The only module that knows which backends exist; each is imported when asked for."""

from __future__ import annotations

import os
from urllib.parse import SplitResult, unquote, urlsplit

from ropewalk.domain import checks
from ropewalk.errors import InvalidInput
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store

KNOWN = "memory://, sqlite:///relative.db, sqlite:////absolute/path.db, postgresql://user@host/database"


def resolved(url: str | None) -> str:
    """None means $ROPEWALK_URL, then memory."""
    return checks.text(url, "url") if url is not None else os.environ.get("ROPEWALK_URL") or "memory://"


def is_chosen(url: str | None) -> bool:
    """Whether anybody said which store it is to be."""
    return bool(url or os.environ.get("ROPEWALK_URL"))


def connect(url: str, runtime: Runtime, *, allow_weaker_durability: bool = False, migrate: bool = True) -> Store:
    """The store behind a URL, not opened yet: no I/O here. `migrate`: opening it may create or change its schema."""
    parts = _split(url)
    match parts.scheme:
        case "memory":
            _refuse_extras(url, parts.netloc + parts.path)
            from ropewalk.backends.memory import MemoryStore

            return MemoryStore(runtime)
        case "sqlite":
            from ropewalk.backends.sqlite import SqliteStore

            return SqliteStore(
                _sqlite_path(url), runtime, allow_weaker_durability=allow_weaker_durability, migrate=migrate
            )
        case "postgresql" | "postgres":
            return _postgres(url, runtime, allow_weaker_durability=allow_weaker_durability, migrate=migrate)
        case _:
            raise InvalidInput(f"url={masked(url)!r} has an unknown scheme: use one of {KNOWN}", field="url")


def masked(url: str) -> str:
    """The URL with any password hidden: fit for messages and logs."""
    head, at, tail = url.rpartition("@")
    if not at or "://" not in head:
        return url
    scheme, _, credentials = head.partition("://")
    user = credentials.partition(":")[0]
    return f"{scheme}://{user}:***@{tail}"


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise InvalidInput(f"url={masked(url)!r} is not a URL ({error}): use one of {KNOWN}", field="url") from error


def _sqlite_path(url: str) -> str:
    parts = urlsplit(url)
    _refuse_extras(url, parts.query + parts.fragment)
    if parts.netloc or not parts.path.startswith("/") or len(parts.path) < 2:
        raise InvalidInput(
            f"url={masked(url)!r} names no file: write sqlite:///jobs.db (relative) or sqlite:////var/lib/jobs.db",
            field="url",
        )
    return unquote(parts.path[1:])


def _postgres(url: str, runtime: Runtime, *, allow_weaker_durability: bool, migrate: bool) -> Store:
    try:
        from ropewalk.backends.postgres import PostgresStore
    except ImportError as error:
        raise InvalidInput(
            f"url={masked(url)!r} needs the driver psycopg ({error}): pip install 'ropewalk[postgres]'", field="url"
        ) from error
    return PostgresStore(url, runtime, allow_weaker_durability=allow_weaker_durability, migrate=migrate)


def _refuse_extras(url: str, extras: str) -> None:
    if extras:
        raise InvalidInput(f"url={masked(url)!r} has parts that mean nothing here: {extras!r}", field="url")
