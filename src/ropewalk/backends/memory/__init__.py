"""The store in memory. It is complete, and written to be read: to learn what a store has to do, begin with store.py."""

from __future__ import annotations

from urllib.parse import urlsplit

from ropewalk.backends.memory.store import MemoryStore as MemoryStore
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.urls import refuse_extras


def from_url(url: str, runtime: Runtime, *, allow_weaker_durability: bool, migrate: bool) -> MemoryStore:
    """Returns the store for `memory://`. It has no durability that could be weakened, and no schema."""
    del allow_weaker_durability, migrate
    parts = urlsplit(url)
    refuse_extras(url, parts.netloc + parts.path)
    return MemoryStore(runtime)
