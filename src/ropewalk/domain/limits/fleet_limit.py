"""Limits of the fleet: how many jobs of a queue, a type, a key or a tenant may run at once, and start over time.

A lane is all jobs with the same tenant, queue, type and key, to which the same limits apply: those of the queue, the
type, the key and the tenant. The limit of a tenant comes from its quota (domain/limits/quota.py); the limit of `*`
applies to each tenant that has none of its own. A key is subject to one limit: the one of the key itself, or else of
the longest family that fits (`customer:*` limits each customer separately). The limit of a queue, type or key belongs
to one tenant or to all tenants together; if there are both, both apply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ropewalk.domain.limits.rate import Rate

LimitKind: TypeAlias = Literal["queue", "type", "key", "tenant"]
ANY: Final = "*"
"""In the place of a tenant's name this means each tenant; at the end of a key it makes a family of keys."""
EVERY_TENANT: Final = ""
"""In the place of a tenant's name this means all tenants together."""

LimitId: TypeAlias = tuple[str, LimitKind, str]
"""(tenant, kind, name)"""

EACH_TENANT: Final[LimitId] = (ANY, "tenant", ANY)
"""This limit applies to each tenant that has none of its own."""


class LaneName(NamedTuple):
    """What the jobs of a lane have in common."""

    tenant: str
    queue: str
    type: str
    key: str
    """The limit key that the jobs name; it is empty if they name none."""

    @property
    def above(self) -> LaneName:
        """The lane of the jobs that differ from these only in naming no key. Fewer limits apply to it."""
        return self._replace(key="")


class Measure(NamedTuple):
    """A limit with the name of what is counted against it. In a family of keys, each key is counted separately."""

    limit: LimitId
    name: str
    """The name of the queue, type, key or tenant."""


class FlowLimit(Struct, frozen=True, kw_only=True):
    """One limit of the fleet: on what runs at once, on what starts over time, or on both."""

    tenant: str
    kind: LimitKind
    name: str
    """The name of the queue, type, key, family of keys or tenant that is limited."""
    concurrency: int | None = None
    """This many jobs may run at once."""
    rate: Rate | None = None
    """This many jobs may start in a span of time."""
    declared: bool = False
    """Whether the code of an app declares the limit, which happens at every start of a worker."""

    @property
    def id(self) -> LimitId:
        return self.tenant, self.kind, self.name

    @property
    def for_each(self) -> bool:
        """Whether this is the limit of a family, which applies to each of its keys separately."""
        return self.kind == "key" and self.name.endswith(ANY)

    def replaces(self, before: FlowLimit | None) -> bool:
        """Whether this limit takes the place of `before`. A limit that code declares never replaces one that somebody
        set at run time."""
        return before is None or (self != before and (before.declared or not self.declared))


class LimitRules:
    """All limits of the fleet. They know which of them apply to a lane."""

    def __init__(self, limits: Iterable[FlowLimit] = ()) -> None:
        self.limits: dict[LimitId, FlowLimit] = {limit.id: limit for limit in limits}
        families = [limit for limit in self.limits.values() if limit.for_each]
        self._families = sorted(families, key=lambda limit: -len(limit.name))

    def __bool__(self) -> bool:
        return bool(self.limits)

    def of_tenant(self, tenant: str) -> list[FlowLimit]:
        """Returns the limits of a tenant by kind and name, without the one that is part of its quota."""
        mine = (limit for _, limit in sorted(self.limits.items()) if limit.tenant == tenant)
        return [limit for limit in mine if limit.kind != "tenant"]

    def on(self, lane: LaneName) -> list[Measure]:
        """Returns the limits that apply to a lane."""
        found: list[Measure] = []
        for tenant in (lane.tenant, EVERY_TENANT):
            named: tuple[LimitId, LimitId] = ((tenant, "queue", lane.queue), (tenant, "type", lane.type))
            found += [Measure(limit, limit[2]) for limit in named if limit in self.limits]
            if lane.key and (of_key := self._on_key(tenant, lane.key)) is not None:
                found.append(Measure(of_key, lane.key))
        of_tenant: tuple[LimitId, LimitId] = ((lane.tenant, "tenant", lane.tenant), EACH_TENANT)
        found += [Measure(limit, lane.tenant) for limit in of_tenant if limit in self.limits][:1]
        return found

    def in_use(self, running: Mapping[LaneName, int]) -> Counter[Measure]:
        """Returns how many of the running jobs, which are given by lane, count against each limit."""
        counted: Counter[Measure] = Counter()
        for lane, number in running.items():
            for measure in self.on(lane):
                counted[measure] += number
        return counted

    def _on_key(self, tenant: str, key: str) -> LimitId | None:
        exact: LimitId = (tenant, "key", key)
        if exact in self.limits:
            return exact
        for family in self._families:
            if family.tenant == tenant and key.startswith(family.name[: -len(ANY)]):
                return family.id
        return None
