"""Fleet-wide limits: how many jobs of a queue, type or key run at once, and how many start in a span of time."""

from __future__ import annotations

from typing import Any

from ropewalk.client.operations.base import Bound
from ropewalk.definitions import checks
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.domain.bounds import check_name
from ropewalk.domain.limits.fleet_limit import EVERY_TENANT, FlowLimit, LimitId, LimitKind
from ropewalk.domain.limits.rate import Rate
from ropewalk.errors import InvalidInput
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.messages import LimitUse


class Limiting(Bound):
    async def set_limit(
        self,
        *,
        queue: str | None = None,
        type: JobType[..., Any, Any] | str | None = None,  # noqa: A002 # as everywhere
        key: str | None = None,
        concurrency: int | None = None,
        rate: Rate | None = None,
        every_tenant: bool = False,
    ) -> None:
        """Limit a queue, a type or a key, from the next claim on; a limit that is there is replaced.

        It holds for the jobs of this tenant, or with `every_tenant` for those of all tenants together.

        >>> await app.set_limit(key="stripe", concurrency=5, rate=Rate(100, per=1))
        >>> await app.set_limit(key="customer:*", concurrency=1)    # for each such key separately
        """
        tenant, kind, name = self._limit_id(queue, type, key, every_tenant=every_tenant)
        if concurrency is None and rate is None:
            raise InvalidInput(
                f"no limit for {kind} {name!r}: give concurrency=, rate= or both (remove_limit takes one away)",
                field="concurrency",
            )
        checks.positive_or_none(concurrency, "concurrency")
        if rate is not None and not isinstance(rate, Rate):
            raise InvalidInput(f"rate={rate!r} must be a Rate, such as Rate(100, per=60)", field="rate")
        limit = FlowLimit(tenant=tenant, kind=kind, name=name, concurrency=concurrency, rate=rate)
        await (await self._store()).put_limit(limit)
        self._core.store.notifier.publish(Hint(control=True))

    async def remove_limit(
        self,
        *,
        queue: str | None = None,
        type: JobType[..., Any, Any] | str | None = None,  # noqa: A002 # as everywhere
        key: str | None = None,
        every_tenant: bool = False,
    ) -> bool:
        """Take a limit away. False: there was none. One that code declares comes back when the next worker starts."""
        wanted = self._limit_id(queue, type, key, every_tenant=every_tenant)
        gone = await (await self._store()).remove_limit(*wanted)
        self._core.store.notifier.publish(Hint(control=True))
        return gone

    async def limits(self, *, every_tenant: bool = False) -> list[LimitUse]:
        """Every limit of this tenant, or of all tenants together, by kind and name, with what runs under it now."""
        return await (await self._store()).limits(EVERY_TENANT if every_tenant else self._tenant)

    def _limit_id(
        self, queue: str | None, of_type: JobType[..., Any, Any] | str | None, key: str | None, *, every_tenant: bool
    ) -> LimitId:
        type_name = of_type.name if isinstance(of_type, JobType) else of_type
        named: list[tuple[LimitKind, str | None]] = [("queue", queue), ("type", type_name), ("key", key)]
        given: list[tuple[LimitKind, str]] = [(kind, name) for kind, name in named if name is not None]
        if len(given) != 1:
            what = " and ".join(f"{kind}={name!r}" for kind, name in given) or "nothing"
            raise InvalidInput(f"a limit is for one of queue=, type= and key=, not for {what}", field="key")
        [(kind, name)] = given
        check_name(checks.text(name, kind), kind, self._core.limits)
        return EVERY_TENANT if every_tenant else self._tenant, kind, name
