"""How a store is reached by its URL: what a backend's package offers, and what its URLs have in common."""

from __future__ import annotations

import re
from typing import Final, Protocol

from ropewalk.errors import InvalidInput
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store

_IN_QUERY: Final = re.compile(r"([?&](?:ssl)?password=)[^&#]+")
"""a password among the parameters, where some client libraries take one"""


class FromUrl(Protocol):
    """The `from_url` of a backend's package, which an entry point of the group `ropewalk.backends` names."""

    def __call__(self, url: str, runtime: Runtime, *, allow_weaker_durability: bool, migrate: bool) -> Store:
        """The store behind a URL, not opened yet: no I/O here. Raises InvalidInput for a URL that does not fit.

        `allow_weaker_durability`: accept settings under which acknowledged work could be lost. `migrate`: opening the
        store may create or change its schema.
        """
        ...


def masked(url: str) -> str:
    """The URL with any password hidden: fit for messages and logs."""
    url = _IN_QUERY.sub(r"\1***", url)
    head, at, tail = url.rpartition("@")
    if not at or "://" not in head:
        return url
    scheme, _, credentials = head.partition("://")
    user, _, password = credentials.partition(":")
    return f"{scheme}://{user}{':***' if password else ''}@{tail}"


def refuse_extras(url: str, extras: str) -> None:
    """Raises InvalidInput where a URL has parts that its store would not look at."""
    if extras:
        raise InvalidInput(f"url={masked(url)!r} has parts that mean nothing here: {extras!r}", field="url")
