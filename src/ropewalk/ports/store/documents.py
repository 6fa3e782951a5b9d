"""Capability: documents, the small records that a service beside the jobs keeps in the store.

The HTTP service keeps its tokens, sessions, audit entries, webhooks, deliveries, bulk operations and declared types as
documents. A store knows nothing of what they mean: it keeps bytes by kind and id, lists them in order of creation,
gives out those that are due, and forgets those that have expired. One small protocol stands for seven tables.

What holds for every verb of a store (core.py) holds here, but for one rule: documents belong to the service and not to
a tenant. The tenant of a document is a key to list by, and whoever reads by id sees the documents of every tenant.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Meta, Struct

from ropewalk.domain import checks
from ropewalk.domain.bounds import NAME_BYTES_MAX, Bounds, check_name
from ropewalk.domain.jobs import clock_set_back
from ropewalk.domain.time import Instant, Span
from ropewalk.errors import InvalidInput, LimitExceeded

BODY_BYTES_MAX: Final = 16 * 1024 * 1024
_BOUNDS: Final = Bounds(name_chars_max=NAME_BYTES_MAX)

Keep: TypeAlias = Literal["keep"]
KEEP: Final[Keep] = "keep"
"""In a write: the instant that the document has already. A new document has none."""


class Document(Struct, frozen=True, kw_only=True):
    """One record of a service."""

    kind: str
    """What sort of document it is, such as "token". Every verb works on one kind, apart from writes."""
    id: str
    """The id, which no other document of its kind has."""
    tenant: str
    topic: str = ""
    """A second key to list by, such as the endpoint of a delivery; empty for none."""
    rev: int
    """The store's number of this state of the document. It grows with every change, and is never used again, not even
    for a document that is deleted and made anew."""
    created_at: Instant
    updated_at: Instant
    due_at: Instant | None = None
    """When `take_documents` gives it out; None is never."""
    expires_at: Instant | None = None
    """From when on it does not exist any more; None is never."""
    body: bytes

    def expired(self, now: Instant) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def due(self, now: Instant) -> bool:
        return self.due_at is not None and self.due_at <= now and not self.expired(now)


class DocumentWrite(Struct, frozen=True, kw_only=True):
    """The request to write one document.

    An overwrite replaces tenant, topic and body. It keeps the instant of creation, and with it the place in lists; and
    it keeps `due_at` and `expires_at` where it says KEEP. Raises InvalidInput or LimitExceeded for values that no store
    keeps.
    """

    kind: str
    id: str
    tenant: str
    topic: str = ""
    body: bytes
    """At most BODY_BYTES_MAX bytes."""
    due_in_us: Span | Keep | None = KEEP
    """The span from the store's now until it is due; None is never."""
    expires_in_us: Span | Keep | None = KEEP
    """The span from the store's now until it expires; None is never."""
    expected_rev: int | None = None
    """None writes whatever is there, 0 only where nothing is there, and another number only over that rev."""

    def __post_init__(self) -> None:
        for field in ("kind", "id", "tenant"):
            check_name(getattr(self, field), field, _BOUNDS)
        if self.topic:
            check_name(self.topic, "topic", _BOUNDS)
        for field in ("due_in_us", "expires_in_us"):
            if (value := getattr(self, field)) != KEEP:
                checks.span_us_or_none(value, field)
        if self.expected_rev is not None:
            checks.between(self.expected_rev, "expected_rev", 0, None)
        if len(self.body) > BODY_BYTES_MAX:
            raise LimitExceeded(
                f"the body of {self.kind} {self.id!r} has {len(self.body)} bytes, over the {BODY_BYTES_MAX} that a "
                "document may have",
                field="body",
            )

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.id

    def fits(self, before: Document | None) -> bool:
        """Whether what is there is what this write expects. A store passes None for what has expired."""
        return self.expected_rev is None or self.expected_rev == (0 if before is None else before.rev)

    def over(self, before: Document | None, rev: int, now: Instant) -> Document:
        """The document that this write makes of what is there. The body of `before` is not looked at."""
        due_at, expires_at = (None, None) if before is None else _instants(before, now)
        return Document(
            kind=self.kind,
            id=self.id,
            tenant=self.tenant,
            topic=self.topic,
            rev=rev,
            created_at=now if before is None else before.created_at,
            updated_at=now,
            due_at=_instant(self.due_in_us, due_at, now),
            expires_at=_instant(self.expires_in_us, expires_at, now),
            body=self.body,
        )


class DocumentWritten(Struct, frozen=True, kw_only=True):
    """The answer to one write."""

    written: bool
    rev: int
    """The new rev. Where nothing was written it is the rev that is there instead of the expected one; 0 is none."""


class DocumentPage(Struct, frozen=True, kw_only=True):
    """A part of a list, and the cursor for the next part."""

    now: Instant
    documents: list[Document]
    next_cursor: str | None


class DocumentStore(Protocol):
    """Documents by kind and id. What a verb costs does not depend on how many documents of other kinds there are."""

    async def write_documents(self, writes: Sequence[DocumentWrite]) -> list[DocumentWritten]:
        """Compare and set, each write by itself, all in one commit; answers in order.

        Of two writes to one document the second one sees the first.
        """
        ...

    async def read_documents(self, kind: str, ids: Sequence[str]) -> dict[str, Document]:
        """Those of them that exist, by id."""
        ...

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
        """In the order in which they were created, of all tenants or one, of all topics or one.

        A cursor stays valid while documents come and go. Raises InvalidInput for one that was not made for this kind
        and direction.
        """
        ...

    async def count_documents(
        self, kind: str, *, tenant: str | None = None, topic: str | None = None, limit: int
    ) -> int:
        """How many a list would have, counted no further than `limit`."""
        ...

    async def delete_documents(
        self, kind: str, ids: Sequence[str], *, revs: Mapping[str, int] | None = None
    ) -> set[str]:
        """Delete these; answers the ids of those that existed. One that `revs` names is deleted only at that rev."""
        ...

    async def take_documents(self, kind: str, limit: int, hide_us: Span) -> list[Document]:
        """Up to `limit` documents that are due, those first that have been due for longest.

        Each of them has a new rev and is due again after hide_us, so that nobody else gets it meanwhile. Whoever has
        done what was due writes it with another `due_in_us` or deletes it, and names the rev of this answer. Where the
        store's clock was set back, no document waits for the difference.
        """
        ...


def _instants(before: Document, now: Instant) -> tuple[Instant | None, Instant | None]:
    """When it is due and expires; nearer by as much as the clock was ahead when that was written."""
    ahead_us = clock_set_back.ahead_by(before.updated_at, now)
    return (
        None if before.due_at is None else before.due_at - ahead_us,
        None if before.expires_at is None else before.expires_at - ahead_us,
    )


def _instant(given: Span | Keep | None, before: Instant | None, now: Instant) -> Instant | None:
    if given is None:
        return None
    return before if isinstance(given, str) else now + given


_Number: TypeAlias = Annotated[int, Meta(ge=-checks.INTEGER_MAX, le=checks.INTEGER_MAX)]


def encode_cursor(kind: str, number: int, *, newest_first: bool) -> str:
    """The place behind the document with this number, which a store gives to documents in the order of creation."""
    return base64.urlsafe_b64encode(msgspec.json.encode((kind, newest_first, number))).decode().rstrip("=")


def decode_cursor(cursor: str, kind: str, *, newest_first: bool) -> int:
    """The number in a cursor. Raises InvalidInput for one that was made for another list, or by nobody."""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        made_for, direction, number = msgspec.json.decode(raw, type=tuple[str, bool, _Number])
    except (ValueError, msgspec.DecodeError) as error:
        raise InvalidInput(f"cursor={cursor!r} is not one that list_documents() returned", field="cursor") from error
    if (made_for, direction) != (kind, newest_first):
        raise InvalidInput("this cursor belongs to another list of documents", field="cursor")
    return number
