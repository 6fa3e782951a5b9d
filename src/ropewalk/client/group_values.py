"""The value of a group, read from the store and decoded: every part of it by the type that produced it."""

from __future__ import annotations

from ropewalk.client.views.jobs import Describer
from ropewalk.definitions.results.group_values import value_of
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.workflow.group_value import KEPT_ONE_BY_ONE
from ropewalk.ports.store.workflows import GroupRecord, WorkflowStore


async def group_value(store: WorkflowStore, root: JobRecord, group: GroupRecord | None, describe: Describer) -> object:
    """Of a group that is only its root: the root's own result. Else None where nobody contributed."""
    one_by_one = group is not None and group.value.reducer in KEPT_ONE_BY_ONE
    kept = await store.contributions(root.tenant, root.id) if one_by_one else ()
    return value_of(root, group, kept, describe.value)
