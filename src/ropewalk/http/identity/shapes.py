"""The shapes of tokens, sessions and the audit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ropewalk.http.wire import Cursor, Name, Timestamp

PageLimit = Annotated[int, Meta(ge=1, le=1000)]


class RoleName(StrEnum):
    SUBMIT = "SUBMIT"
    READ = "READ"
    OPERATE = "OPERATE"
    WORK = "WORK"
    ADMIN = "ADMIN"


class PayloadRights(StrEnum):
    FULL = "FULL"
    REDACTED = "REDACTED"
    NONE = "NONE"


class TokenRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to make. It can do no more than the one that makes it."""

    name: Name
    roles: Annotated[list[RoleName], Meta(min_length=1, max_length=5)]
    tenant: Name | UnsetType = UNSET
    """By default the tenant of the maker; `*` for every tenant."""
    payloads: PayloadRights = PayloadRights.REDACTED
    types: Annotated[list[Name], Meta(min_length=1, max_length=1000)] | None = None
    queues: Annotated[list[Name], Meta(min_length=1, max_length=1000)] | None = None
    requests_per_second: Annotated[float, Meta(gt=0, le=1_000_000)] | None = None
    expires_at: Timestamp | None = None


class TokenInfo(Struct, frozen=True, kw_only=True):
    """A token without its secret."""

    token_id: str
    name: str
    tenant: str
    roles: Sequence[RoleName]
    payloads: PayloadRights
    types: Sequence[str] | None
    queues: Sequence[str] | None
    requests_per_second: float | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class NewToken(TokenInfo, frozen=True, kw_only=True):
    token: str
    """What a client sends as `Authorization: Bearer …`. It is shown only once."""


class Tokens(Struct, frozen=True, kw_only=True):
    tokens: Sequence[TokenInfo]
    next_cursor: str | None


class PageQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cursor: Cursor | None = None
    limit: PageLimit = 100


class Login(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    token: Annotated[str, Meta(min_length=1, max_length=512)]


class Me(Struct, frozen=True, kw_only=True):
    """Who a request comes from."""

    subject: str
    tenant: str
    roles: Sequence[RoleName]
    payloads: PayloadRights
    types: Sequence[str] | None
    queues: Sequence[str] | None
    session: bool


class AuditQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    subject: Name | None = None
    cursor: Cursor | None = None
    limit: PageLimit = 100


class AuditRecord(Struct, frozen=True, kw_only=True):
    at: datetime
    request_id: str
    subject: str
    operation: str
    target: str
    tenant: str
    address: str | None
    outcome: str
    reason: str | None


class AuditPage(Struct, frozen=True, kw_only=True):
    entries: Sequence[AuditRecord]
    next_cursor: str | None
