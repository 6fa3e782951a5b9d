"""Documents: the records that a service keeps beside the jobs, in the order in which they were created."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import structs

from ropewalk.domain.jobs import clock_set_back
from ropewalk.domain.time import Instant, Span
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.documents import (
    Document,
    DocumentPage,
    DocumentWrite,
    DocumentWritten,
    decode_cursor,
    encode_cursor,
)

if TYPE_CHECKING:
    from ropewalk.backends.memory.tables import Tables


class Documents:
    """Each document with its number, by kind and id."""

    def __init__(self) -> None:
        self._last = 0
        self._by_kind: dict[str, dict[str, tuple[int, Document]]] = {}

    def get(self, kind: str, document_id: str, now: Instant) -> Document | None:
        found = self._by_kind.get(kind, {}).get(document_id)
        return None if found is None or found[1].expired(now) else found[1]

    def of_kind(self, kind: str, now: Instant) -> Iterator[tuple[int, Document]]:
        return (each for each in self._by_kind.get(kind, {}).values() if not each[1].expired(now))

    def write(self, asked: DocumentWrite, now: Instant) -> DocumentWritten:
        before = self.get(asked.kind, asked.id, now)
        if not asked.fits(before):
            return DocumentWritten(written=False, rev=0 if before is None else before.rev)
        after = asked.over(before, self._next(), now)
        if before is None:
            self.delete(asked.kind, asked.id)  # an expired one, which would keep its place
        of_kind = self._by_kind.setdefault(asked.kind, {})
        of_kind[asked.id] = after.rev if before is None else of_kind[asked.id][0], after
        return DocumentWritten(written=True, rev=after.rev)

    def delete(self, kind: str, document_id: str) -> None:
        self._by_kind.get(kind, {}).pop(document_id, None)

    def take(self, kind: str, limit: int, hide_us: Span, now: Instant) -> list[Document]:
        self._follow_clock(kind, now)
        due = [(document.due_at, number, document) for number, document in self.of_kind(kind, now) if document.due(now)]
        taken: list[Document] = []
        for _, number, document in islice(sorted(due), limit):
            hidden = structs.replace(document, rev=self._next(), updated_at=now, due_at=now + hide_us)
            self._by_kind[kind][document.id] = number, hidden
            taken.append(hidden)
        return taken

    def prune(self, now: Instant) -> None:
        for of_kind in self._by_kind.values():
            for document_id in [each.id for _, each in of_kind.values() if each.expired(now)]:
                del of_kind[document_id]

    def _follow_clock(self, kind: str, now: Instant) -> None:
        """Brings documents nearer that were written by a clock which has been set back since."""
        for document_id, (number, document) in self._by_kind.get(kind, {}).items():
            ahead_us = clock_set_back.ahead_by(document.updated_at, now)
            if document.due_at is not None and ahead_us:
                expires_at = None if document.expires_at is None else document.expires_at - ahead_us
                nearer = structs.replace(
                    document, updated_at=now, due_at=document.due_at - ahead_us, expires_at=expires_at
                )
                self._by_kind[kind][document_id] = number, nearer

    def _next(self) -> int:
        self._last += 1
        return self._last


class MemoryDocuments:
    """The verbs of DocumentStore."""

    _tables: Tables
    _lock: threading.Lock
    _runtime: Runtime

    async def write_documents(self, writes: Sequence[DocumentWrite]) -> list[DocumentWritten]:
        with self._lock:
            now = self._runtime.now()
            return [self._tables.documents.write(asked, now) for asked in writes]

    async def read_documents(self, kind: str, ids: Sequence[str]) -> dict[str, Document]:
        with self._lock:
            now = self._runtime.now()
            found = (self._tables.documents.get(kind, each, now) for each in ids)
            return {document.id: document for document in found if document is not None}

    async def list_documents(
        self,
        kind: str,
        *,
        tenant: str | None = None,
        topic: str | None = None,
        newest_first: bool = False,
        cursor: str | None = None,
        limit: int,
    ) -> DocumentPage:
        after = None if cursor is None else decode_cursor(cursor, kind, newest_first=newest_first)
        with self._lock:
            now = self._runtime.now()
            found = list(_listed(self._tables.documents.of_kind(kind, now), tenant, topic))
        ordered = found[::-1] if newest_first else found
        behind = [each for each in ordered if after is None or (each[0] < after if newest_first else each[0] > after)]
        shown = behind[:limit]
        next_cursor = encode_cursor(kind, shown[-1][0], newest_first=newest_first) if len(behind) > limit else None
        return DocumentPage(now=now, documents=[document for _, document in shown], next_cursor=next_cursor)

    async def count_documents(
        self, kind: str, *, tenant: str | None = None, topic: str | None = None, limit: int
    ) -> int:
        with self._lock:
            found = _listed(self._tables.documents.of_kind(kind, self._runtime.now()), tenant, topic)
            return sum(1 for _ in islice(found, limit))

    async def delete_documents(
        self, kind: str, ids: Sequence[str], *, revs: Mapping[str, int] | None = None
    ) -> set[str]:
        with self._lock:
            gone: set[str] = set()
            for each in ids:
                document = self._tables.documents.get(kind, each, self._runtime.now())
                if document is not None and (revs or {}).get(each, document.rev) == document.rev:
                    self._tables.documents.delete(kind, each)
                    gone.add(each)
            return gone

    async def take_documents(self, kind: str, limit: int, hide_us: Span) -> list[Document]:
        with self._lock:
            return self._tables.documents.take(kind, limit, hide_us, self._runtime.now())


def _listed(
    found: Iterator[tuple[int, Document]], tenant: str | None, topic: str | None
) -> Iterator[tuple[int, Document]]:
    return (
        (number, document)
        for number, document in found
        if tenant in (None, document.tenant) and topic in (None, document.topic)
    )
