"""The limits that job types declare, put into the store when a worker starts: before it claims the first job."""

from __future__ import annotations

from ropewalk.definitions.registry import Registry
from ropewalk.domain.limits.fleet_limit import EVERY_TENANT, FlowLimit, LimitId
from ropewalk.errors import DefinitionError
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.core import Store


async def declare_limits(registry: Registry, store: Store) -> None:
    declared = limits_in(registry)
    if not declared:
        return
    held = {use.limit.id: use.limit for use in await store.limits(EVERY_TENANT)}
    new = [limit for limit in declared if limit.replaces(held.get(limit.id))]
    for limit in new:
        await store.put_limit(limit)
    if new:
        store.notifier.publish(Hint(control=True))


def limits_in(registry: Registry) -> list[FlowLimit]:
    """Raises DefinitionError where two types say different things about one key."""
    said: dict[LimitId, tuple[FlowLimit, str]] = {}
    for each in registry:
        limit = None if each.options.limit is None else each.options.limit.of(each.name)
        if limit is None:
            continue
        other, its_type = said.setdefault(limit.id, (limit, each.name))
        if other != limit:
            raise DefinitionError(
                f"{its_type} and {each.name} declare different limits for key {limit.name!r}: "
                "declare it once, and name the key alone with limit= everywhere else"
            )
    return [limit for limit, _ in said.values()]
