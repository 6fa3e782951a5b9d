"""The value of a group, made of what a store keeps of it. Every part is decoded by the type that produced it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import msgspec

from ropewalk.domain.jobs.flags import FORGOTTEN
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.errors import GroupFailed, NotFound
from ropewalk.ports.store.workflows import GroupContribution, GroupRecord


def value_of(
    root: JobRecord,
    group: GroupRecord | None,
    contributions: Sequence[GroupContribution],
    decode: Callable[[str | None, bytes | None], object],
) -> object:
    """The value of a group. If the group is only its root, this is the root's result; None if nobody contributed.

    `contributions` are those that are stored one by one (KEPT_ONE_BY_ONE). `decode` gets the name of the type that
    produced a value, or None for a value of no type.
    """
    if group is None:
        return decode(root.type, root.result)
    stored = group.value
    match stored.reducer:
        case None:
            return decode(root.type, root.result) if sum(counts_of(root, group)) == 1 else None
        case "last" | "final":
            return decode(stored.type, stored.value)
        case "custom":
            return decode(None, stored.value)
        case "count" | "sum" | "min" | "max":
            return None if stored.value is None else msgspec.json.decode(stored.value)
        case "list" | "merge":
            values = [decode(each.type, each.value) for each in contributions]
            return values if stored.reducer == "list" else _merged(values)


def value_is_gone(root: JobRecord, group: GroupRecord | None) -> bool:
    """Whether the value is the result of the root, because it is alone, and this result was forgotten."""
    alone = group is None or (group.value.reducer is None and sum(counts_of(root, group)) == 1)
    return alone and bool(root.flags & FORGOTTEN)


def counts_of(root: JobRecord, group: GroupRecord | None) -> tuple[int, int, int, int]:
    """How many jobs of the group are open, completed, failed and cancelled."""
    if group is not None:
        return group.open, group.completed, group.failed, group.cancelled
    status = root.status
    return (
        int(not root.terminal),
        int(status is Status.COMPLETED),
        int(status in _FAILED),
        int(status is Status.CANCELLED),
    )


def check_group(root: JobRecord, group: GroupRecord | None, *, raise_on_failure: bool) -> None:
    """Raises GroupFailed if the group has no single value, or with `raise_on_failure` if a job did not complete.

    Raises NotFound if its value was forgotten.
    """
    opened, completed, failed, cancelled = counts_of(root, group)
    problem = None
    if value_is_gone(root, group):
        raise NotFound(
            f"the value of group {root.id} ({root.type}) is gone: "
            "Retention.of(results=...) keeps results shorter than jobs"
        )
    if group is not None and group.value.conflict is not None:
        problem = f"its value cannot be told: {group.value.conflict}"
    elif raise_on_failure and (failed or cancelled):
        problem = f"{failed} of {opened + completed + failed + cancelled} jobs failed, {cancelled} were cancelled"
    if problem is not None:
        raise GroupFailed(
            f"group {root.id} ({root.type}): {problem}",
            group_id=root.id,
            completed=completed,
            failed=failed,
            cancelled=cancelled,
        )


_FAILED = frozenset({Status.FAILED, Status.DEAD_LETTER})


def _merged(values: list[object]) -> dict[object, object]:
    merged: dict[object, object] = {}
    for value in values:
        if isinstance(value, Mapping):
            merged.update(cast("Mapping[object, object]", value))
    return merged
