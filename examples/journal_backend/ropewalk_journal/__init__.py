"""A backend for ropewalk outside its package: jobs in memory, and every change in a journal file."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from ropewalk import InvalidInput
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.urls import masked, refuse_extras
from ropewalk_journal.store import JournalStore as JournalStore


def from_url(url: str, runtime: Runtime, *, allow_weaker_durability: bool, migrate: bool) -> JournalStore:
    """`journal:///relative.journal` or `journal:////absolute/path.journal`. Neither schema nor durability vary."""
    del allow_weaker_durability, migrate
    parts = urlsplit(url)
    refuse_extras(url, parts.netloc + parts.query + parts.fragment)
    if len(parts.path) < 2:
        raise InvalidInput(f"url={masked(url)!r} names no file: write journal:///jobs.journal", field="url")
    return JournalStore(unquote(parts.path[1:]), runtime)
