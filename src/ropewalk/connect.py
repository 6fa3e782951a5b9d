"""This module makes the store for a URL. The bundled backends are in a table; others are found by their entry points. A
backend is imported when its scheme is used."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from ropewalk.domain import checks
from ropewalk.errors import InvalidInput
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.urls import FromUrl, masked

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BUNDLED: Final = {
    "memory": "ropewalk.backends.memory",
    "sqlite": "ropewalk.backends.sqlite",
    "postgresql": "ropewalk.backends.postgres",
    "postgres": "ropewalk.backends.postgres",
}
"""For each scheme, the package whose `from_url` makes the store."""
GROUP: Final = "ropewalk.backends"
"""The entry point group in which other packages register their schemes."""
KNOWN: Final = "memory://, sqlite:///relative.db, sqlite:////absolute/path.db, postgresql://user@host/database"


def resolved(url: str | None) -> str:
    """Returns the URL to use: the one passed, or else $ROPEWALK_URL, or else memory://."""
    return checks.text(url, "url") if url is not None else os.environ.get("ROPEWALK_URL") or "memory://"


def is_chosen(url: str | None) -> bool:
    """Whether the caller or $ROPEWALK_URL names a store."""
    return bool(url or os.environ.get("ROPEWALK_URL"))


def connect(url: str, runtime: Runtime, *, allow_weaker_durability: bool = False, migrate: bool = True) -> Store:
    """Returns the store for a URL, without opening it, so this does no I/O. `migrate` says whether opening it may
    create or change its schema."""
    from_url = _bundled(scheme) if (scheme := _scheme(url)) in BUNDLED else _installed(scheme, url)
    return from_url(url, runtime, allow_weaker_durability=allow_weaker_durability, migrate=migrate)


def check_store(store: object, url: str | None, *, allow_weaker_durability: bool, migrate: bool) -> None:
    """Raises InvalidInput if the object is not a store, or if an option was passed that only a URL can have."""
    needed = ("submit", "claim", "settle", "open", "close")
    checks.with_methods(store, "store", needed, "a store, such as SqliteStore(path, runtime)")
    if url is not None:
        raise InvalidInput(
            f"url={masked(checks.text(url, 'url'))!r} is given beside store=: give one of them",
            field="url",
        )
    if allow_weaker_durability:
        raise InvalidInput(
            "allow_weaker_durability=True is given beside store=: give it to the store when you make it",
            field="allow_weaker_durability",
        )
    if not migrate:
        raise InvalidInput(
            "migrate=False is given beside store=: give it to the store when you make it", field="migrate"
        )


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:  # Its message may contain the password.
        refused = InvalidInput(f"url={masked(url)!r} is not a URL: use one of {KNOWN}", field="url")
    raise refused


def _bundled(scheme: str) -> FromUrl:
    return cast("FromUrl", import_module(BUNDLED[scheme]).from_url)


def _installed(scheme: str, url: str) -> FromUrl:
    """Returns the `from_url` of an installed package. Raises InvalidInput unless exactly one package has the scheme."""
    from importlib.metadata import entry_points  # This import takes 20 ms, which the bundled backends do not need.

    installed = entry_points(group=GROUP)
    found = {each.value: each for each in installed if each.name == scheme}
    if not found:
        others = sorted({f"{each.name}://" for each in installed if each.name not in BUNDLED})
        known = ", ".join([KNOWN, *others])
        raise InvalidInput(
            f"url={masked(url)!r} has an unknown scheme: use one of {known}, or install a package with an entry point "
            f"{scheme or 'SCHEME'!r} in the group {GROUP!r}",
            field="url",
        )
    if len(found) > 1:
        named = " and ".join(sorted(found))
        raise InvalidInput(
            f"url={masked(url)!r}: {named} both name the scheme {scheme!r} in the entry point group {GROUP!r}: "
            "uninstall one of their packages",
            field="url",
        )
    [entry_point] = found.values()
    return _loaded(entry_point, url)


def _loaded(entry_point: EntryPoint, url: str) -> FromUrl:
    try:
        from_url = entry_point.load()
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            f"url={masked(url)!r} needs {entry_point.value!r}, which cannot be imported ({error}): repair its package",
            field="url",
        ) from error
    if not callable(from_url):
        raise InvalidInput(
            f"url={masked(url)!r} needs {entry_point.value!r}, which is no function: the package that names it in "
            f"{GROUP!r} must name its from_url",
            field="url",
        )
    return cast("FromUrl", from_url)
