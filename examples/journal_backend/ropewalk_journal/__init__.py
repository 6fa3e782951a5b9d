"""A backend for ropewalk outside its package: jobs in memory, and every change in a journal file."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from ropewalk import InvalidInput
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.urls import masked, refuse_extras
from ropewalk_journal.store import JournalStore as JournalStore


def from_url(url: str, runtime: Runtime, *, allow_weaker_durability: bool, migrate: bool) -> JournalStore:
    """Make a store from `journal:///relative.journal` or `journal:////absolute/path.journal`.

    The last two parameters have no effect, because a journal has one durability and no schema.
    """
    del allow_weaker_durability, migrate
    parts = urlsplit(url)
    refuse_extras(url, parts.netloc + parts.query + parts.fragment)
    if len(parts.path) < 2:
        raise InvalidInput(f"url={masked(url)!r} names no file: write journal:///jobs.journal", field="url")
    return JournalStore(unquote(parts.path[1:]), runtime)
