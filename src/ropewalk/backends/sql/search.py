"""domain.search.matches as SQL: one condition for each thing a filter sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ropewalk.backends.sql.statements import Statements
from ropewalk.backends.sql.tx import SqlValue
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.domain.jobs.states import State
from ropewalk.domain.search import Filter, Order, Position
from ropewalk.domain.time import Instant

_STATES: Final[dict[State, str]] = {
    State.PENDING: "place < 2 AND unmet > 0",
    State.SCHEDULED: "place < 2 AND unmet = 0 AND run_at <= :now",
    State.RETRYING: "place < 2 AND unmet = 0 AND run_at > :now AND last_move = 'retry'",
    State.DELAYED: "place < 2 AND unmet = 0 AND run_at > :now AND last_move <> 'retry'",
    # Few among many: by their own index, instead of walking past everything else.
    State.RUNNING: "seq IN (SELECT seq FROM job WHERE place = 2)",
    State.COMPLETED: "place = 3 AND {completed}",
    State.FAILED: "place = 3 AND status = 'failed'",
    State.DEAD_LETTER: "place = 3 AND status = 'dead_letter'",
    State.CANCELLED: "place = 3 AND status = 'cancelled'",
}
_ONE_OF: Final = {
    "types": "type",
    "queues": "queue",
    "priorities": "priority",
    "error_categories": "{error_category}",
    "error_codes": "{error_code}",
}
_COMPARED: Final = {
    "created_after": "created_at > :created_after",
    "created_before": "created_at < :created_before",
    "updated_after": "updated_at > :updated_after",
    "workflow_id": "workflow_id = :workflow_id",
    "group_id": "(group_id = :group_id OR (group_id IS NULL AND id = :group_id))",
    "parent_id": "parent_id = :parent_id",
    "correlation_id": "correlation_id = :correlation_id",
    "text": "(CAST(:text AS text) IN (substr(id, 1, length(CAST(:text AS text))),"
    " substr(type, 1, length(CAST(:text AS text))),"
    " substr(coalesce(idempotency_key, ''), 1, length(CAST(:text AS text))),"
    " substr(coalesce(correlation_id, ''), 1, length(CAST(:text AS text))), {error_code}))",
}
_SELECTIVE: Final = ("workflow_id", "group_id", "parent_id", "correlation_id")
"""what has an index of its own, better than the one by tenant"""
_ORDERS: Final = {
    Order.CREATED_ASC: ("seq > :after_seq", "seq"),
    Order.CREATED_DESC: ("seq < :after_seq", "seq DESC"),
    Order.UPDATED_DESC: ("(updated_at, seq) < (:after_value, :after_seq)", "updated_at DESC, seq DESC"),
}


class Query:
    """The jobs of one tenant that a filter means. What differs between the stores is a part of their statements."""

    def __init__(self, sql: Statements, tenant: str, wanted: Filter, now: Instant) -> None:
        self._sql = sql
        self._parts = {
            "completed": sql.search_completed,
            "error_category": sql.search_error.format(field="category"),
            "error_code": sql.search_error.format(field="code"),
        }
        self.values: dict[str, SqlValue] = {"tenant": tenant, "now": now}
        self._where = ["tenant = :tenant"]
        if tenant != DEFAULT_TENANT and not any(getattr(wanted, field) for field in _SELECTIVE):
            self._where.append("tenant <> 'default'")  # lets the index by tenant be used: it leaves out the default one
        if wanted.states is not None:
            self._add(_any_of(f"({_STATES[state]})" for state in wanted.states))
        for field, column in _ONE_OF.items():
            self._one_of(field, column, getattr(wanted, field))
        for field, condition in _COMPARED.items():
            value = getattr(wanted, field)
            if value is not None:
                self._add(condition, **{field: value})
        for number, (name, value) in enumerate((wanted.tags or {}).items()):
            names = {"name": f"tag_{number}", "value": f"tag_value_{number}"}
            self._add(sql.search_tag.format(**names), **{names["name"]: name, names["value"]: value})

    def count(self) -> str:
        return f"SELECT count(*) FROM job WHERE {self._conditions()}"  # noqa: S608  every condition is one of ours

    def page(self, order: Order, after: Position | None, limit: int) -> str:
        """The seqs of the next jobs, as one JSON array."""
        passed, by = _ORDERS[order]
        if after is not None:
            self._add(passed, after_value=after[0], after_seq=after[1])
        self.values["limit"] = limit
        return self._sql.search_page.format(conditions=self._conditions(), order=by)

    def _one_of(self, field: str, column: str, values: tuple[str | int, ...] | None) -> None:
        if values is not None:
            choices = msgspec.json.encode(values).decode()
            self._add(self._sql.search_one_of.format(column=column, field=field), **{field: choices})

    def _add(self, condition: str, **values: SqlValue) -> None:
        self._where.append(condition.format(**self._parts))
        self.values.update(values)

    def _conditions(self) -> str:
        return " AND ".join(self._where)


def _any_of(conditions: Iterable[str]) -> str:
    return f"({' OR '.join(conditions) or 'FALSE'})"
