"""Tokens: what programs prove their identity with. The store keeps them without their secrets."""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
from collections import OrderedDict
from typing import Final

import msgspec
from msgspec import Struct, structs

from ropewalk.client.app_state import AppState
from ropewalk.domain.time import DAY, MINUTE, SECOND, Instant, Span
from ropewalk.errors import RopewalkError
from ropewalk.http.identity.identity import Identity, Payloads, Role
from ropewalk.ports.store.capabilities import DOCUMENTS
from ropewalk.ports.store.documents import Document, DocumentStore, DocumentWrite

KIND: Final = "token"
PREFIX: Final = "rw"
SECRET_BYTES: Final = 32
_ID: Final = re.compile(r"[0-9a-f]{16}")
USE_NOTED_EVERY_US: Final[Span] = MINUTE
CACHED_SECONDS: Final = 1.0
"""How long a token that was read counts as it was: within this time a revocation holds everywhere."""
CACHED_MAX: Final = 10_000
LIFE_MAX_US: Final[Span] = 3650 * DAY


class Token(Struct, frozen=True, kw_only=True):
    """A token as it is kept: everything but its secret."""

    id: str
    secret_hash: bytes
    name: str
    """What people call it."""
    tenant: str
    roles: tuple[Role, ...]
    payloads: Payloads
    types: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None
    requests_per_second: float | None = None
    """How many requests it may send to each server per second. None for any number."""
    created_at: Instant = 0
    expires_at: Instant | None = None
    last_used_at: Instant | None = None
    """When it was last used, exact to a minute."""

    @property
    def identity(self) -> Identity:
        return Identity(
            subject=f"token:{self.id}",
            tenant=self.tenant,
            roles=frozenset(self.roles),
            payloads=self.payloads,
            types=None if self.types is None else frozenset(self.types),
            queues=None if self.queues is None else frozenset(self.queues),
            token_id=self.id,
            requests_per_second=self.requests_per_second,
        )


class Tokens:
    """The tokens in a store. Each is read at most once a second."""

    def __init__(self, app_state: AppState) -> None:
        self._app_state = app_state
        self._known: OrderedDict[str, tuple[float, Token | None]] = OrderedDict()
        self._noted: OrderedDict[str, float] = OrderedDict()
        """When this server last recorded that a token was used, by the monotonic clock: asking the store for its time
        would cost every request a round trip."""

    @property
    def _documents(self) -> DocumentStore:
        return DOCUMENTS.of(self._app_state.store)

    async def create(self, token: Token) -> tuple[Token, str]:
        """Keeps a new token; its id, secret and times are made here. Returns it with the text that a client sends."""
        await self._app_state.open()
        now = await self._app_state.store.clock()
        secret = secrets.token_urlsafe(SECRET_BYTES)
        token_id = secrets.token_hex(8)
        made = structs.replace(token, id=token_id, secret_hash=_hash(secret), created_at=now)
        write = DocumentWrite(
            kind=KIND,
            id=token_id,
            tenant=token.tenant,
            body=msgspec.json.encode(made),
            expires_in_us=None if token.expires_at is None else max(1, token.expires_at - now),
            expected_rev=0,
        )
        [answer] = await self._documents.write_documents([write])
        assert answer.written, "an id of 64 random bits was taken"
        return made, f"{PREFIX}_{token_id}_{secret}"

    async def proved_by(self, text: str) -> Token | None:
        """The token that a client sent, if it is a valid one."""
        prefix, _, rest = text.partition("_")
        token_id, _, secret = rest.partition("_")
        if prefix != PREFIX or not token_id or not secret:
            return None
        token = await self.get(token_id)
        if token is None or not hmac.compare_digest(token.secret_hash, _hash(secret)):
            return None
        await self.note_use(token)
        return token

    async def get(self, token_id: str) -> Token | None:
        """A valid token by its id, as it was at most a second ago. To look at a token is no use of it."""
        if not _ID.fullmatch(token_id):
            return None
        now = self._app_state.runtime.monotonic()
        known = self._known.get(token_id)
        if known is not None and now - known[0] < CACHED_SECONDS:
            return known[1]
        await self._app_state.open()
        document = await self._read(token_id)
        token = None if document is None else decoded(document)
        self._known[token_id] = (now, token)
        self._known.move_to_end(token_id)
        if len(self._known) > CACHED_MAX:
            self._known.popitem(last=False)
        return token

    async def note_use(self, token: Token) -> None:
        """Records that somebody proved to have a token, at most once a minute. That it cannot be written does not stop
        the request."""
        monotonic = self._app_state.runtime.monotonic()
        if monotonic - self._noted.get(token.id, -math.inf) < USE_NOTED_EVERY_US / SECOND:
            return
        self._noted[token.id] = monotonic
        self._noted.move_to_end(token.id)
        if len(self._noted) > CACHED_MAX:
            self._noted.popitem(last=False)
        try:
            now, document = await self._app_state.store.clock(), await self._read(token.id)
            if document is not None and now - (token.last_used_at or 0) >= USE_NOTED_EVERY_US:
                await self._documents.write_documents([_used(document, now)])
        except RopewalkError as error:
            self._app_state.events.report(error, "token")

    async def revoke(self, token_id: str) -> bool:
        """Deletes a token. Other servers accept it for at most another second."""
        gone = await self._documents.delete_documents(KIND, [token_id])
        self._known.pop(token_id, None)
        return bool(gone)

    async def page(self, tenant: str | None, cursor: str | None, limit: int) -> tuple[list[Token], str | None]:
        """Tokens of a tenant, or of all, newest first, and the cursor of the next page."""
        page = await self._documents.list_documents(KIND, tenant=tenant, newest_first=True, cursor=cursor, limit=limit)
        return [decoded(each) for each in page.documents], page.next_cursor

    async def _read(self, token_id: str) -> Document | None:
        return (await self._documents.read_documents(KIND, [token_id])).get(token_id)


def decoded(document: Document) -> Token:
    """The token that a document keeps."""
    return msgspec.json.decode(document.body, type=Token)


def _used(document: Document, now: Instant) -> DocumentWrite:
    return DocumentWrite(
        kind=KIND,
        id=document.id,
        tenant=document.tenant,
        body=msgspec.json.encode(structs.replace(decoded(document), last_used_at=now)),
        expected_rev=document.rev,  # a token that was revoked meanwhile must not come back
    )


def _hash(secret: str) -> bytes:
    """A secret of 256 random bits needs no slow hash: nobody can try them all."""
    return hashlib.sha256(secret.encode()).digest()
