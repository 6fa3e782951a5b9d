"""Sessions: what browsers prove their identity with, after somebody has logged in with a token."""

from __future__ import annotations

import hashlib
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Final

import msgspec
from msgspec import Struct, structs

from ropewalk.client.app_state import AppState
from ropewalk.domain.time import DAY, HOUR, MINUTE, SECOND, Instant, Span
from ropewalk.errors import RopewalkError
from ropewalk.http.identity.identity import Identity
from ropewalk.http.identity.tokens import Token, Tokens
from ropewalk.http.request import Request
from ropewalk.ports.store.capabilities import DOCUMENTS
from ropewalk.ports.store.documents import Document, DocumentStore, DocumentWrite

KIND: Final = "session"
IDLE_US: Final[Span] = 12 * HOUR
"""A session ends when it has not been used for so long."""
LIFE_US: Final[Span] = 7 * DAY
"""A session ends when it is so old, however much it is used."""
USE_NOTED_EVERY_US: Final[Span] = MINUTE
COOKIE: Final = "ropewalk"
LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})


class Session(Struct, frozen=True, kw_only=True):
    token_id: str
    created_at: Instant


class Sessions:
    """The sessions in a store. Each ends with its token."""

    def __init__(self, app_state: AppState, tokens: Tokens) -> None:
        self._app_state = app_state
        self._tokens = tokens

    @property
    def _documents(self) -> DocumentStore:
        return DOCUMENTS.of(self._app_state.store)

    async def begin(self, token: Token) -> str:
        """Keeps a new session, and returns the secret that its cookie carries."""
        secret = secrets.token_urlsafe(32)
        body = msgspec.json.encode(Session(token_id=token.id, created_at=await self._app_state.store.clock()))
        write = DocumentWrite(kind=KIND, id=_id_of(secret), tenant=token.tenant, body=body, expires_in_us=IDLE_US)
        await self._documents.write_documents([write])
        return secret

    async def end(self, session_id: str) -> None:
        await self._documents.delete_documents(KIND, [session_id])

    async def proved_by(self, request: Request) -> Identity | None:
        """The identity of the cookie that a browser sent, if its session and its token are valid."""
        secret = _cookie(request)
        if secret is None:
            return None
        await self._app_state.open()
        session_id = _id_of(secret)
        document = (await self._documents.read_documents(KIND, [session_id])).get(session_id)
        if document is None:
            return None
        session = msgspec.json.decode(document.body, type=Session)
        token = await self._tokens.get(session.token_id)
        if token is None:
            return None
        now = await self._app_state.store.clock()
        if now - session.created_at >= LIFE_US:
            return None
        await self._prolong(document, session, now)
        await self._tokens.note_use(token)
        return structs.replace(token.identity, session_id=session_id)

    async def _prolong(self, document: Document, session: Session, now: Instant) -> None:
        """A use moves the end of the session, which is written at most once a minute."""
        if now - document.updated_at < USE_NOTED_EVERY_US:
            return
        left_us = min(IDLE_US, session.created_at + LIFE_US - now)
        write = DocumentWrite(
            kind=KIND,
            id=document.id,
            tenant=document.tenant,
            body=document.body,
            expires_in_us=max(1, left_us),
            expected_rev=document.rev,  # a session that was ended meanwhile must not come back
        )
        try:
            await self._documents.write_documents([write])
        except RopewalkError as error:
            self._app_state.events.report(error, "session")


def set_cookie(request: Request, secret: str | None) -> str:
    """The Set-Cookie header that gives a browser its session, or takes it away.

    Over plain HTTP, which is allowed on loopback only, the cookie can be neither Secure nor have the prefix for it.
    """
    name, secure = (f"__Host-{COOKIE}", "; Secure") if request.https else (COOKIE, "")
    age = 0 if secret is None else LIFE_US // SECOND
    return f"{name}={secret or ''}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}"


def may_log_in(request: Request) -> bool:
    """Whether the connection is safe enough for a session: HTTPS, or from this machine."""
    return request.https or request.peer is None or request.peer in LOOPBACK


def _cookie(request: Request) -> str | None:
    header = request.headers.get("cookie")
    if header is None:
        return None
    try:
        cookies = SimpleCookie(header)
    except CookieError:
        return None
    found = cookies.get(f"__Host-{COOKIE}" if request.https else COOKIE)
    return None if found is None else found.value


def _id_of(secret: str) -> str:
    """The store keeps a hash, so that who reads the store cannot take over a session."""
    return hashlib.sha256(secret.encode()).hexdigest()
