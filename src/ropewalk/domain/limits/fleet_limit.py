"""Limits on what runs at once and starts over time, fleet-wide: of a queue, a type, a key that jobs name, or a tenant.

A lane is all jobs one set of limits applies to: the same tenant, queue, type and key. Each limit that applies counts:
the queue's, the type's, the key's, and the tenant's, which its quota sets (domain/limits/quota.py); that of `*` is for
each tenant without its own. Of several that fit a key the one that says most about it applies: the key itself,
then the longest family (`customer:*`, for each customer separately). A limit is a tenant's own, or for all tenants
together; both count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ropewalk.domain.limits.rate import Rate

LimitKind: TypeAlias = Literal["queue", "type", "key", "tenant"]
ANY: Final = "*"
EVERY_TENANT: Final = ""
"""in the place of a tenant's name: all of them together"""

LimitId: TypeAlias = tuple[str, LimitKind, str]
"""(tenant, kind, name)"""

EACH_TENANT: Final[LimitId] = (ANY, "tenant", ANY)
"""for each that has none of its own"""


class LaneName(NamedTuple):
    tenant: str
    queue: str
    type: str
    key: str
    """empty for jobs that name none"""

    @property
    def above(self) -> LaneName:
        """The lane of jobs that differ only in naming no key: fewer limits apply to it."""
        return self._replace(key="")


class Measure(NamedTuple):
    """What is counted against a limit together: for a family each key apart, else everything it applies to."""

    limit: LimitId
    name: str


class FlowLimit(Struct, frozen=True, kw_only=True):
    tenant: str
    kind: LimitKind
    name: str
    concurrency: int | None = None
    """how many may run at once"""
    rate: Rate | None = None
    """how many may start"""
    declared: bool = False
    """code says so, at the start of a worker"""

    @property
    def id(self) -> LimitId:
        return self.tenant, self.kind, self.name

    @property
    def for_each(self) -> bool:
        """Is it one of a family, which every key has to itself?"""
        return self.kind == "key" and self.name.endswith(ANY)

    def replaces(self, before: FlowLimit | None) -> bool:
        """What was set at run time stays as it is, whatever code declares."""
        return before is None or (self != before and (before.declared or not self.declared))


class Rules:
    """All limits there are, and which apply to a lane."""

    def __init__(self, limits: Iterable[FlowLimit] = ()) -> None:
        self.limits: dict[LimitId, FlowLimit] = {limit.id: limit for limit in limits}
        families = [limit for limit in self.limits.values() if limit.for_each]
        self._families = sorted(families, key=lambda limit: -len(limit.name))

    def __bool__(self) -> bool:
        return bool(self.limits)

    def of_tenant(self, tenant: str) -> list[FlowLimit]:
        """By kind and name, but for the one that is part of its quota."""
        mine = (limit for _, limit in sorted(self.limits.items()) if limit.tenant == tenant)
        return [limit for limit in mine if limit.kind != "tenant"]

    def on(self, lane: LaneName) -> list[Measure]:
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
        """How many of these jobs count against what."""
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
