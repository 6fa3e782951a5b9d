"""Tokens, the session of a browser, and the audit."""

from __future__ import annotations

from typing import Any

import msgspec

from ropewalk.domain.time import to_instant
from ropewalk.http.answer import Reply
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import ErrorCode, HttpError, invalid, not_found
from ropewalk.http.identity.audit import AuditEntry
from ropewalk.http.identity.identity import EVERY_TENANT, Identity, Payloads, Role
from ropewalk.http.identity.sessions import may_log_in, set_cookie
from ropewalk.http.identity.shapes import (
    AuditPage,
    AuditQuery,
    AuditRecord,
    Login,
    Me,
    NewToken,
    PageQuery,
    PayloadRights,
    RoleName,
    TokenInfo,
    TokenRequest,
    Tokens,
)
from ropewalk.http.identity.tokens import Token
from ropewalk.http.pages import seal, unseal
from ropewalk.http.routing import Access, Routes
from ropewalk.http.wire import timestamp, timestamp_or_none

routes = Routes("identity")

_SEES = [Payloads.NONE, Payloads.REDACTED, Payloads.FULL]
"""Payload rights, each of which contains those before it."""


@routes.post(
    "/tokens",
    role=Role.ADMIN,
    statuses=(201,),
    errors=(ErrorCode.UNSUPPORTED,),
    example={"name": "billing", "roles": ["SUBMIT"]},
)
async def create_token(call: Call[TokenRequest, NoQuery]) -> Reply[NewToken]:
    """Make a token. Its text is shown only in this answer."""
    body, me = call.body, call.identity
    tenant = me.tenant if isinstance(body.tenant, msgspec.UnsetType) else body.tenant
    wanted = Token(
        id="",
        secret_hash=b"",
        name=body.name,
        tenant=tenant,
        roles=tuple(sorted({Role(each.value.lower()) for each in body.roles})),
        payloads=Payloads(body.payloads.value.lower()),
        types=None if body.types is None else tuple(sorted(set(body.types))),
        queues=None if body.queues is None else tuple(sorted(set(body.queues))),
        requests_per_second=body.requests_per_second,
        expires_at=None if body.expires_at is None else to_instant(body.expires_at, "expires_at"),
    )
    await _check_no_more_than(call, wanted)
    made, text = await call.service.tokens.create(wanted)
    return Reply(NewToken(**_shown(made), token=text), 201)


@routes.get("/tokens", role=Role.ADMIN, errors=(ErrorCode.UNSUPPORTED,))
async def list_tokens(call: Call[None, PageQuery]) -> Tokens:
    """List tokens, newest first."""
    tenant = _own_tenant(call.identity)
    cursor = unseal(call.query.cursor, "tokens", tenant)
    found, following = await call.service.tokens.page(tenant, cursor, call.query.limit)
    return Tokens(tokens=[TokenInfo(**_shown(each)) for each in found], next_cursor=seal(following, "tokens", tenant))


@routes.get("/tokens/{id}", role=Role.ADMIN, errors=(ErrorCode.UNSUPPORTED,))
async def get_token(call: Call[None, NoQuery]) -> TokenInfo:
    """Look at a token."""
    return TokenInfo(**_shown(await _found(call)))


@routes.delete("/tokens/{id}", role=Role.ADMIN, errors=(ErrorCode.UNSUPPORTED,))
async def revoke_token(call: Call[None, NoQuery]) -> None:
    """Revoke a token. All servers refuse it within a second."""
    token = await _found(call)
    if not await call.service.tokens.revoke(token.id):
        raise not_found()


@routes.get("/session", role=Access.IDENTIFIED)
async def who_am_i(call: Call[None, NoQuery]) -> Me:
    """Tell who the request comes from and what this identity may do."""
    return _me(call.identity)


@routes.post(
    "/session",
    role=Access.PUBLIC,
    statuses=(201,),
    errors=(ErrorCode.UNAUTHORIZED, ErrorCode.FORBIDDEN, ErrorCode.QUOTA_EXCEEDED, ErrorCode.UNSUPPORTED),
    example={"token": "rw_0123456789abcdef_…"},
)
async def log_in(call: Call[Login, NoQuery]) -> Reply[Me]:
    """Begin the session of a browser, which gets a cookie."""
    request, service = call.request, call.service
    if not may_log_in(request):
        raise HttpError(ErrorCode.FORBIDDEN, "a session needs HTTPS, unless the browser is on this machine")
    service.guesses.check(request.peer)
    token = await service.tokens.proved_by(call.body.token)
    if token is None:
        service.guesses.count(request.peer)
        raise HttpError(ErrorCode.UNAUTHORIZED, "this is not a valid token")
    secret = await service.sessions.begin(token)
    return Reply(_me(token.identity, session=True), 201, {"Set-Cookie": set_cookie(request, secret)})


@routes.delete("/session", role=Access.IDENTIFIED)
async def log_out(call: Call[None, NoQuery]) -> Reply[None]:
    """End the session of this browser."""
    if call.identity.session_id is not None:
        await call.service.sessions.end(call.identity.session_id)
    return Reply(None, 204, {"Set-Cookie": set_cookie(call.request, None)})


@routes.get("/audit", role=Role.ADMIN, errors=(ErrorCode.UNSUPPORTED,))
async def read_audit(call: Call[None, AuditQuery]) -> AuditPage:
    """Read who changed what, newest first. Entries are kept for 90 days."""
    tenant, query = _own_tenant(call.identity), call.query
    bound_to = ("audit", tenant, query.subject)
    page = await call.service.audit.page(tenant, query.subject, unseal(query.cursor, *bound_to), query.limit)
    return AuditPage(
        entries=[_record(msgspec.json.decode(each.body, type=AuditEntry)) for each in page.documents],
        next_cursor=seal(page.next_cursor, *bound_to),
    )


async def _check_no_more_than(call: Call[Any, Any], wanted: Token) -> None:
    """Raises HttpError if a token could do more than the identity that makes it."""
    me = call.identity
    too_much: list[tuple[bool, str]] = [
        (me.tenant not in (EVERY_TENANT, wanted.tenant), "tenant"),
        (not set(wanted.roles) <= me.roles, "roles"),
        (_SEES.index(wanted.payloads) > _SEES.index(me.payloads), "payloads"),
        (me.types is not None and not (wanted.types is not None and set(wanted.types) <= me.types), "types"),
        (me.queues is not None and not (wanted.queues is not None and set(wanted.queues) <= me.queues), "queues"),
    ]
    for exceeds, field in too_much:
        if exceeds:
            raise HttpError(ErrorCode.FORBIDDEN, f"{field}: a token can do no more than the one that makes it")
    now = await call.store.clock()
    if wanted.expires_at is not None and wanted.expires_at <= now:
        raise invalid("expires_at has passed already", field="expires_at")
    mine = None if me.token_id is None else await call.service.tokens.get(me.token_id)
    end = None if mine is None else mine.expires_at
    if end is not None and (wanted.expires_at is None or wanted.expires_at > end):
        raise HttpError(ErrorCode.FORBIDDEN, "expires_at: a token lives no longer than the one that makes it")


async def _found(call: Call[Any, Any]) -> Token:
    token = await call.service.tokens.get(call.id)
    tenant = _own_tenant(call.identity)
    if token is None or tenant not in (None, token.tenant):
        raise not_found()
    return token


def _own_tenant(identity: Identity) -> str | None:
    return None if identity.tenant == EVERY_TENANT else identity.tenant


def _shown(token: Token) -> dict[str, Any]:
    return {
        "token_id": token.id,
        "name": token.name,
        "tenant": token.tenant,
        "roles": [RoleName(each.value.upper()) for each in token.roles],
        "payloads": PayloadRights(token.payloads.value.upper()),
        "types": token.types,
        "queues": token.queues,
        "requests_per_second": token.requests_per_second,
        "created_at": timestamp(token.created_at),
        "expires_at": timestamp_or_none(token.expires_at),
        "last_used_at": timestamp_or_none(token.last_used_at),
    }


def _me(identity: Identity, *, session: bool = False) -> Me:
    return Me(
        subject=identity.subject,
        tenant=identity.tenant,
        roles=[RoleName(each.value.upper()) for each in Role if each in identity.roles],
        payloads=PayloadRights(identity.payloads.value.upper()),
        types=None if identity.types is None else sorted(identity.types),
        queues=None if identity.queues is None else sorted(identity.queues),
        session=session or identity.session_id is not None,
    )


def _record(entry: AuditEntry) -> AuditRecord:
    return AuditRecord(
        at=timestamp(entry.at),
        request_id=entry.request_id,
        subject=entry.subject,
        operation=entry.operation,
        target=entry.target,
        tenant=entry.tenant,
        address=entry.address,
        outcome=entry.outcome,
        reason=entry.reason,
    )
