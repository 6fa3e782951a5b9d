"""Fleet limits: how many jobs of a queue, type or key run at once, and how many start in a span of time."""

from __future__ import annotations

from typing import Any, Literal

from ropewalk.client.operations.base import TenantOperations
from ropewalk.definitions.job_types.job_type import JobType, type_name
from ropewalk.domain import checks
from ropewalk.domain.limits.fleet_limit import EVERY_TENANT, FlowLimit, LimitId, LimitKind
from ropewalk.domain.limits.rate import RATE_EXAMPLE, Rate
from ropewalk.errors import InvalidInput
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.capabilities import LIMITS
from ropewalk.ports.store.limits import LimitUse


class LimitOperations(TenantOperations):
    """Sets, removes and lists limits."""

    async def set_limit(
        self,
        *,
        queue: str | None = None,
        type: JobType[..., Any, Any] | str | None = None,  # noqa: A002 # as everywhere
        key: str | None = None,
        concurrency: int | None = None,
        rate: Rate | None = None,
        every_tenant: Literal[False] = False,
    ) -> None:
        """Limit a queue, a type or a key for the jobs of this tenant, from the next claim on.

        An existing limit is replaced.

        >>> await app.tenant("acme").set_limit(key="stripe", concurrency=5, rate=Rate(100, per=1))
        >>> await app.tenant("acme").set_limit(key="customer:*", concurrency=1)    # for each such key separately
        """
        await self._put_limit(queue, type, key, concurrency, rate, every_tenant=every_tenant)

    async def remove_limit(
        self,
        *,
        queue: str | None = None,
        type: JobType[..., Any, Any] | str | None = None,  # noqa: A002 # as everywhere
        key: str | None = None,
        every_tenant: Literal[False] = False,
    ) -> bool:
        """Remove a limit of this tenant. Returns False if there was none."""
        return await self._remove_limit(queue, type, key, every_tenant=every_tenant)

    async def limits(self, *, every_tenant: Literal[False] = False) -> list[LimitUse]:
        """Return every limit of this tenant, with the number of jobs that run under it now."""
        return await self._limits(every_tenant=every_tenant)

    async def _put_limit(
        self,
        queue: str | None,
        of_type: JobType[..., Any, Any] | str | None,
        key: str | None,
        concurrency: int | None,
        rate: Rate | None,
        *,
        every_tenant: bool,
    ) -> None:
        tenant, kind, name = self._limit_id(queue, of_type, key, every_tenant=every_tenant)
        if concurrency is None and rate is None:
            raise InvalidInput(
                f"the limit of {kind} {name!r} is empty: give concurrency, rate or both, or remove the limit",
                field="concurrency",
            )
        checks.positive_or_none(concurrency, "concurrency")
        checks.instance_or_none(rate, "rate", Rate, RATE_EXAMPLE)
        limit = FlowLimit(tenant=tenant, kind=kind, name=name, concurrency=concurrency, rate=rate)
        await LIMITS.of(await self._store()).put_limit(limit)
        self._app_state.store.notifier.publish(Hint(control=True))

    async def _remove_limit(
        self, queue: str | None, of_type: JobType[..., Any, Any] | str | None, key: str | None, *, every_tenant: bool
    ) -> bool:
        wanted = self._limit_id(queue, of_type, key, every_tenant=every_tenant)
        gone = await LIMITS.of(await self._store()).remove_limit(*wanted)
        self._app_state.store.notifier.publish(Hint(control=True))
        return gone

    async def _limits(self, *, every_tenant: bool) -> list[LimitUse]:
        return await LIMITS.of(await self._store()).limits(self._whose(every_tenant=every_tenant))

    def _whose(self, *, every_tenant: bool) -> str:
        if not checks.flag(every_tenant, "every_tenant"):
            return self._tenant
        self._refuse_beyond("every_tenant=True")
        return EVERY_TENANT

    def _limit_id(
        self, queue: str | None, of_type: JobType[..., Any, Any] | str | None, key: str | None, *, every_tenant: bool
    ) -> LimitId:
        its_type = None if of_type is None else type_name(of_type, "type")
        named: list[tuple[LimitKind, str | None]] = [("queue", queue), ("type", its_type), ("key", key)]
        named_ones: list[tuple[LimitKind, str]] = [(kind, name) for kind, name in named if name is not None]
        if len(named_ones) != 1:
            what = " and ".join(f"{kind}={name!r}" for kind, name in named_ones) or "none"
            raise InvalidInput(f"a limit needs exactly one of queue, type and key, and got {what}", field="key")
        [(kind, name)] = named_ones
        self._name(name, kind)
        return self._whose(every_tenant=every_tenant), kind, name
