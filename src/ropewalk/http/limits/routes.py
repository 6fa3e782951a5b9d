"""Limits of the fleet, and quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from ropewalk.domain.limits import quota, rate
from ropewalk.http.answer import Reply
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import ErrorCode, HttpError, invalid, not_found
from ropewalk.http.identity.identity import EVERY_TENANT, Role
from ropewalk.http.jobs.lookup import refuse_bounded
from ropewalk.http.routing import Routes
from ropewalk.http.wire import DurationAboveZero, iso_duration, seconds
from ropewalk.ports.store.limits import LimitUse

routes = Routes("limits")

Positive = Annotated[int, Meta(ge=1, le=2**31 - 1)] | Annotated[float, Meta(ge=1, le=2**31 - 1, multiple_of=1)]


LIMIT_KINDS: Final = ("queue", "type", "key")


class RateAlgorithm(StrEnum):
    SLIDING = "SLIDING"
    FIXED = "FIXED"
    TOKEN = "TOKEN"  # noqa: S105  a bucket of tokens


class RateSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """At most `count` starts, or submissions, in a span of time."""

    count: Positive
    per: DurationAboveZero
    algorithm: RateAlgorithm = RateAlgorithm.SLIDING


class RateInfo(Struct, frozen=True, kw_only=True):
    count: int
    per: str
    algorithm: RateAlgorithm


class LimitChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many jobs may run at once, how many may start in a span of time, or both."""

    concurrency: Positive | None = None
    rate: RateSpec | None = None


class LimitQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    every_tenant: bool = False
    """The limit that all tenants share, instead of that of one tenant."""


class LimitInfo(Struct, frozen=True, kw_only=True):
    kind: str
    name: str
    concurrency: int | None
    rate: RateInfo | None
    in_use: int
    keys: Mapping[str, int]
    """Of a family of keys: in use by key."""
    every_tenant: bool


class Limits(Struct, frozen=True, kw_only=True):
    limits: Sequence[LimitInfo]


class QuotaChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The quota of a tenant. What is left out stays open."""

    pending: Positive | None = None
    """How many jobs may wait."""
    running: Positive | None = None
    submissions: RateSpec | None = None
    payload_bytes: Positive | None = None


class QuotaInfo(Struct, frozen=True, kw_only=True):
    tenant: str
    pending: int | None
    running: int | None
    submissions: RateInfo | None
    payload_bytes: int | None


class QuotaUse(Struct, frozen=True, kw_only=True):
    """The quota that holds for a tenant, and how much of it is in use."""

    quota: QuotaInfo | None
    """None if the tenant has no quota."""
    pending: int | None
    running: int | None
    submissions: int | None


class Quotas(Struct, frozen=True, kw_only=True):
    quotas: Sequence[QuotaInfo]


@routes.get("/limits", role=Role.READ, errors=(ErrorCode.UNSUPPORTED,))
async def list_limits(call: Call[None, LimitQuery]) -> Limits:
    """List the limits, and what runs under each now."""
    refuse_bounded(call)
    every_tenant = _every_tenant(call)
    found = await call.client.limits(every_tenant=every_tenant)
    return Limits(limits=[_limit(each, every_tenant=every_tenant) for each in found])


@routes.put(
    "/limits/{kind}/{name}",
    role=Role.OPERATE,
    errors=(ErrorCode.CONFLICT, ErrorCode.UNSUPPORTED),
    example={"concurrency": 5},
    path_values={"kind": LIMIT_KINDS},
)
async def set_limit(call: Call[LimitChange, LimitQuery]) -> LimitInfo:
    """Set or replace the limit of a queue, a type or a key."""
    refuse_bounded(call)
    every_tenant, named = _every_tenant(call), _named(call)
    body = call.body
    await call.client.set_limit(
        **named,
        concurrency=None if body.concurrency is None else int(body.concurrency),
        rate=_rate(body.rate, "rate"),
        every_tenant=every_tenant,
    )
    for each in await call.client.limits(every_tenant=every_tenant):
        if (each.limit.kind, each.limit.name) == (call.params["kind"], call.params["name"]):
            return _limit(each, every_tenant=every_tenant)
    raise HttpError(ErrorCode.CONFLICT, "somebody else removed the limit at the same time")


@routes.delete(
    "/limits/{kind}/{name}",
    role=Role.OPERATE,
    errors=(ErrorCode.UNSUPPORTED,),
    path_values={"kind": LIMIT_KINDS},
)
async def remove_limit(call: Call[None, LimitQuery]) -> None:
    """Remove a limit."""
    refuse_bounded(call)
    if not await call.client.remove_limit(**_named(call), every_tenant=_every_tenant(call)):
        raise not_found()


@routes.get("/quota", role=Role.READ, errors=(ErrorCode.UNSUPPORTED,))
async def get_quota(call: Call[None, NoQuery]) -> QuotaUse:
    """Show the quota of the own tenant, and how much of it is in use."""
    refuse_bounded(call)
    use = await call.client.quota()
    if use is None:
        return QuotaUse(quota=None, pending=None, running=None, submissions=None)
    return QuotaUse(quota=_quota(use.quota), pending=use.pending, running=use.running, submissions=use.submissions)


@routes.get("/quotas", role=Role.ADMIN, every_tenant=True, errors=(ErrorCode.UNSUPPORTED,))
async def list_quotas(call: Call[None, NoQuery]) -> Quotas:
    """List the quotas of all tenants. That of the tenant `*` fills in what the others leave open."""
    return Quotas(quotas=[_quota(each) for each in await call.client.quotas()])


@routes.get("/quotas/{tenant}", role=Role.ADMIN, every_tenant=True, errors=(ErrorCode.UNSUPPORTED,))
async def get_quota_of_tenant(call: Call[None, NoQuery]) -> QuotaInfo:
    """Show the quota that was set for a tenant."""
    for each in await call.client.quotas():
        if each.tenant == call.params["tenant"]:
            return _quota(each)
    raise not_found()


@routes.put(
    "/quotas/{tenant}",
    role=Role.ADMIN,
    every_tenant=True,
    errors=(ErrorCode.UNSUPPORTED,),
    example={"pending": 10_000},
)
async def set_quota(call: Call[QuotaChange, NoQuery]) -> Reply[QuotaInfo]:
    """Set or replace the quota of a tenant."""
    body, tenant = call.body, call.params["tenant"]
    wanted = quota.Quota(
        tenant=tenant,
        pending=_integer(body.pending),
        running=_integer(body.running),
        submissions=_rate(body.submissions, "submissions"),
        payload_bytes=_integer(body.payload_bytes),
    )
    await call.service.client(tenant).set_quota(
        pending=wanted.pending,
        running=wanted.running,
        submissions=wanted.submissions,
        payload_bytes=wanted.payload_bytes,
    )
    return Reply(_quota(wanted))


@routes.delete("/quotas/{tenant}", role=Role.ADMIN, every_tenant=True, errors=(ErrorCode.UNSUPPORTED,))
async def remove_quota(call: Call[None, NoQuery]) -> None:
    """Remove the quota of a tenant."""
    if not await call.service.client(call.params["tenant"]).remove_quota():
        raise not_found()


def _every_tenant(call: Call[Any, LimitQuery]) -> bool:
    """Raises HttpError if the identity has only one tenant, or may not manage what all tenants share."""
    if not call.query.every_tenant:
        return False
    if call.identity.tenant != EVERY_TENANT or Role.ADMIN not in call.identity.roles:
        raise HttpError(ErrorCode.FORBIDDEN, "every_tenant=true needs the role 'admin' for every tenant")
    return True


def _named(call: Call[Any, Any]) -> dict[str, Any]:
    kind = call.params["kind"]
    if kind not in LIMIT_KINDS:
        raise invalid(f"{kind!r} is no kind of limit: use queue, type or key", field="kind")
    return {kind: call.params["name"]}


def _limit(use: LimitUse, *, every_tenant: bool) -> LimitInfo:
    return LimitInfo(
        kind=use.limit.kind,
        name=use.limit.name,
        concurrency=use.limit.concurrency,
        rate=_rate_info(use.limit.rate),
        in_use=use.in_use,
        keys=use.keys,
        every_tenant=every_tenant,
    )


def _quota(given: quota.Quota) -> QuotaInfo:
    return QuotaInfo(
        tenant=given.tenant,
        pending=given.pending,
        running=given.running,
        submissions=_rate_info(given.submissions),
        payload_bytes=given.payload_bytes,
    )


def _rate(given: RateSpec | None, field: str) -> rate.Rate | None:
    if given is None:
        return None
    algorithm: Any = given.algorithm.value.lower()
    return rate.Rate(int(given.count), per=seconds(given.per, f"{field}.per"), algorithm=algorithm)


def _rate_info(given: rate.Rate | None) -> RateInfo | None:
    if given is None:
        return None
    algorithm = RateAlgorithm(given.algorithm.upper())
    return RateInfo(count=given.count, per=iso_duration(given.window_us), algorithm=algorithm)


def _integer(value: float | None) -> int | None:
    return None if value is None else int(value)
