"""Documents: the records that a service keeps beside the jobs. A write is judged on the locked row (DocumentWrite).

A verb says first which documents it means, by number, and loads them afterwards, so that no statement returns more than
LOADED_BYTES_MAX at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from ropewalk.backends.sql.damage import Rows
from ropewalk.backends.sql.statements import Statements
from ropewalk.backends.sql.tx import Row, Tx, Values
from ropewalk.domain.checks import INTEGER_MAX
from ropewalk.domain.jobs.clock_set_back import written_ahead_from
from ropewalk.domain.time import Instant, Span, StoredInstant
from ropewalk.errors import StoreRefused
from ropewalk.ports.store.documents import (
    BODY_BYTES_MAX,
    Document,
    DocumentPage,
    DocumentWrite,
    DocumentWritten,
    decode_cursor,
    encode_cursor,
)

T = TypeVar("T")

LOADED_BYTES_MAX: Final = BODY_BYTES_MAX
"""As many bytes as one document may have."""
TRIES_MAX: Final = 10
"""Somebody else may insert a document between the look at what is there and the insert, and delete it again."""

Key: TypeAlias = tuple[str, str]
Asked: TypeAlias = tuple[int, DocumentWrite]
"""A write with its place among those of the call."""
Numbered: TypeAlias = tuple[int, Document]
"""A document with its number, which says which of them was created first."""


class _Head(Struct, array_like=True):
    """A document without its body, its tenant and its topic, which an overwrite replaces."""

    kind: str
    id: str
    number: int
    rev: int
    created_at: StoredInstant
    updated_at: StoredInstant
    due_at: StoredInstant | None
    expires_at: StoredInstant | None


class _Stored(Struct, array_like=True):
    number: int
    id: str
    tenant: str
    topic: str
    rev: int
    created_at: StoredInstant
    updated_at: StoredInstant
    due_at: StoredInstant | None
    expires_at: StoredInstant | None


class _Listed(Struct, frozen=True, kw_only=True):
    """Which documents a list is of, and the statements that find these by their index."""

    kind: str
    tenant: str | None
    topic: str | None
    newest_first: bool = False

    def values(self, now: Instant, limit: int, after: int | None = None) -> Values:
        return {
            "kind": self.kind,
            "tenant": self.tenant,
            "topic": self.topic,
            "now": now,
            "after": after,
            "limit": limit,
        }

    def pages(self, sql: Statements) -> str:
        if self.topic is not None:
            return sql.newest_documents_of_topic if self.newest_first else sql.documents_of_topic
        if self.tenant is not None:
            return sql.newest_documents_of_tenant if self.newest_first else sql.documents_of_tenant
        return sql.newest_documents_of_kind if self.newest_first else sql.documents_of_kind

    def counts(self, sql: Statements) -> str:
        if self.topic is not None:
            return sql.count_documents_of_topic
        return sql.count_documents_of_kind if self.tenant is None else sql.count_documents_of_tenant


_heads = Rows("document", _Head)
_stored = Rows("document", _Stored)
_raw = msgspec.json.Decoder(list[msgspec.Raw])
_ints = msgspec.json.Decoder(list[int])
_sized = msgspec.json.Decoder(list[tuple[int, int]])


class SqlDocuments(ABC):
    """The verbs of DocumentStore, for every SQL store. Each runs one of the functions below in one transaction."""

    @abstractmethod
    async def _read(self, work: Callable[[Tx], T]) -> T: ...

    @abstractmethod
    async def _write(self, work: Callable[[Tx], T]) -> T: ...

    async def write_documents(self, writes: Sequence[DocumentWrite]) -> list[DocumentWritten]:
        return await self._write(lambda tx: write(tx, writes))

    async def read_documents(self, kind: str, ids: Sequence[str]) -> dict[str, Document]:
        return await self._read(lambda tx: read(tx, kind, ids))

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
        listed = _Listed(kind=kind, tenant=tenant, topic=topic, newest_first=newest_first)
        return await self._read(lambda tx: page(tx, listed, cursor, limit))

    async def count_documents(
        self, kind: str, *, tenant: str | None = None, topic: str | None = None, limit: int
    ) -> int:
        return await self._read(lambda tx: count(tx, _Listed(kind=kind, tenant=tenant, topic=topic), limit))

    async def delete_documents(
        self, kind: str, ids: Sequence[str], *, revs: Mapping[str, int] | None = None
    ) -> set[str]:
        return await self._write(lambda tx: delete(tx, kind, ids, revs or {}))

    async def take_documents(self, kind: str, limit: int, hide_us: Span) -> list[Document]:
        return await self._write(lambda tx: take(tx, kind, limit, hide_us))


def write(tx: Tx, writes: Sequence[DocumentWrite]) -> list[DocumentWritten]:
    answers: dict[int, DocumentWritten] = {}
    for places in _rounds(writes):
        _write(tx, {writes[place].key: (place, writes[place]) for place in places}, answers)
    return [answers[place] for place in range(len(writes))]


def _rounds(writes: Sequence[DocumentWrite]) -> Iterator[list[int]]:
    """Splits the writes, by place, into rounds in which each document occurs once."""
    left = list(range(len(writes)))
    while left:
        first: dict[Key, int] = {}
        later = [place for place in left if first.setdefault(writes[place].key, place) != place]
        yield list(first.values())
        left = later


def _write(tx: Tx, writes: dict[Key, Asked], answers: dict[int, DocumentWritten]) -> None:
    for _ in range(TRIES_MAX):
        writes = _write_once(tx, writes, answers)
        if not writes:
            return
    names = ", ".join(f"{kind} {document_id!r}" for kind, document_id in writes)
    raise StoreRefused(f"the stored document {names} cannot be read: repair or delete its row in table document")


def _write_once(tx: Tx, writes: dict[Key, Asked], answers: dict[int, DocumentWritten]) -> dict[Key, Asked]:
    """Judges and writes each of them. Returns those of which somebody else has inserted the document meanwhile."""
    there = _locked(tx, writes)
    fresh: dict[Key, Row] = {}
    changed: list[Row] = []
    for (key, (place, asked)), rev in zip(writes.items(), tx.take_seqs(len(writes)), strict=True):
        number, before = there.get(key, (rev, None))
        live = None if before is None or before.expired(tx.now) else before
        if not asked.fits(live):
            answers[place] = DocumentWritten(written=False, rev=0 if live is None else live.rev)
            continue
        answers[place] = DocumentWritten(written=True, rev=rev)
        row = _row(tx, rev if live is None else number, asked.over(live, rev, tx.now))
        if before is None:
            fresh[key] = row
        else:
            changed.append(row)
    tx.run_rows(tx.sql.update_documents, changed)
    # In order of key, so that two who insert several never wait for each other.
    if tx.run_rows(tx.sql.insert_documents, [row for _, row in sorted(fresh.items())]) == len(fresh):
        return {}
    kept = _locked(tx, fresh)
    return {key: writes[key] for key, row in fresh.items() if key not in kept or kept[key][0] != row[2]}


def _locked(tx: Tx, keys: Iterable[Key]) -> dict[Key, Numbered]:
    """Locks the documents with these keys, as far as they exist. Their bodies stay empty."""
    found = _heads.decode(tx, tx.value(tx.sql.lock_documents, (_json(sorted(keys)),)))
    return {(head.kind, head.id): (head.number, _without_body(head)) for head in found}


def _without_body(head: _Head) -> Document:
    return Document(
        kind=head.kind,
        id=head.id,
        tenant="",
        rev=head.rev,
        created_at=head.created_at,
        updated_at=head.updated_at,
        due_at=head.due_at,
        expires_at=head.expires_at,
        body=b"",
    )


def _row(tx: Tx, number: int, document: Document) -> Row:
    return (
        document.kind,
        document.id,
        number,
        document.rev,
        document.tenant,
        document.topic,
        document.created_at,
        document.updated_at,
        document.due_at,
        document.expires_at,
        tx.blob(document.body),
    )


def read(tx: Tx, kind: str, ids: Sequence[str]) -> dict[str, Document]:
    found = tx.value(tx.sql.documents_named, (_json(list(ids)), kind, tx.now))
    return {document.id: document for _, document in _loaded(tx, kind, _sized.decode(found))}


def page(tx: Tx, listed: _Listed, cursor: str | None, limit: int) -> DocumentPage:
    newest_first = listed.newest_first
    if cursor is None:
        after = INTEGER_MAX if newest_first else 0
    else:
        after = decode_cursor(cursor, listed.kind, newest_first=newest_first)
    found = _sized.decode(tx.value(listed.pages(tx.sql), listed.values(tx.now, limit + 1, after)))
    shown = found[:limit]
    behind = encode_cursor(listed.kind, shown[-1][0], newest_first=newest_first) if len(found) > limit else None
    documents = [document for _, document in _loaded(tx, listed.kind, shown)]
    return DocumentPage(now=tx.now, documents=documents, next_cursor=behind)


def count(tx: Tx, listed: _Listed, limit: int) -> int:
    counted: int = tx.value(listed.counts(tx.sql), listed.values(tx.now, limit))
    return counted


def delete(tx: Tx, kind: str, ids: Sequence[str], revs: Mapping[str, int]) -> set[str]:
    there = _locked(tx, {(kind, each) for each in ids})
    gone = {
        document.id
        for _, document in there.values()
        if not document.expired(tx.now) and revs.get(document.id, document.rev) == document.rev
    }
    if gone:
        tx.run(tx.sql.delete_documents, (kind, _json(sorted(gone))))
    return gone


def take(tx: Tx, kind: str, limit: int, hide_us: Span) -> list[Document]:
    tx.run(tx.sql.bring_documents_nearer, (kind, tx.now, written_ahead_from(tx.now)))
    due = _sized.decode(tx.value(tx.sql.due_documents, (kind, tx.now, limit)))
    if not due:
        return []
    revs = tx.take_seqs(len(due))
    until: Instant = tx.now + hide_us
    hidden = [(kind, number, rev, tx.now, until) for (number, _), rev in zip(due, revs, strict=True)]
    tx.run_rows(tx.sql.hide_documents, hidden)
    return [document for _, document in _loaded(tx, kind, due)]


def prune(tx: Tx, limit: int) -> None:
    tx.run(tx.sql.prune_documents, (tx.now, limit))


def _loaded(tx: Tx, kind: str, sized: Sequence[tuple[int, int]]) -> Iterator[Numbered]:
    """Loads the documents with these numbers, in this order, as far as they can be read."""
    for numbers in _pieces(tx, sized):
        found = tx.row(tx.sql.load_documents, (_json(numbers), kind))
        assert found is not None
        bodies, end = found[2] or b"", 0
        sizes = _ints.decode(found[1])
        if sum(sizes) != len(bodies) and not tx.careful:
            raise msgspec.DecodeError("the body of a document is not bytes")
        for stored, size in zip(_stored.decode(tx, found[0]), sizes, strict=False):
            start, end = end, end + size
            body = bodies if tx.careful else bodies[start:end]
            yield stored.number, _document(kind, stored, body)


def _pieces(tx: Tx, sized: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Splits the numbers by the sizes of their bodies. Who reads carefully loads one at a time, because a row that is
    left out must not give its body to another one."""
    piece: list[int] = []
    room = LOADED_BYTES_MAX
    for number, size in sized:
        if piece and (size > room or tx.careful):
            yield piece
            piece, room = [], LOADED_BYTES_MAX
        piece.append(number)
        room -= size
    if piece:
        yield piece


def _document(kind: str, stored: _Stored, body: bytes) -> Document:
    return Document(
        kind=kind,
        id=stored.id,
        tenant=stored.tenant,
        topic=stored.topic,
        rev=stored.rev,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
        due_at=stored.due_at,
        expires_at=stored.expires_at,
        body=bytes(body),
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
