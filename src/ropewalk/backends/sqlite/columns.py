"""Writes the lists of columns of the job table (backends/sql/columns.py) in the SQL of SQLite."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from ropewalk.backends.sql.columns import (
    AS_READY,
    CHANGING,
    COLUMNS,
    HEAD,
    JSON,
    OTHERS,
    PLACE,
    SAVED,
    ZERO_BY_DEFAULT,
)


def _value(name: str) -> str:
    if name not in JSON:
        return f"job.{name}"
    column = f"job.{name}" if COLUMNS[name].nullable else f"coalesce(job.{name}, '{{}}')"
    return f"json({column})"


def _of_job(names: Iterable[str]) -> str:
    return ", ".join(f"job.{name}" for name in names)


def _constant(value: str | int | None) -> str:
    return "NULL" if value is None else repr(value)


PARTS: Final = {
    "head_values": ", ".join("''" if name == "input" else f"job.{name}" for name in HEAD),
    "ready_values": ", ".join(_constant(AS_READY[name]) if name in AS_READY else f"job.{name}" for name in HEAD),
    "other_values": ", ".join(f"'{name}', {_value(name)}" for name in OTHERS),
    "has_counts": " OR ".join(f"job.{name} > 0" for name in ZERO_BY_DEFAULT),
    "nullable_others": _of_job(name for name in OTHERS if name not in ZERO_BY_DEFAULT),
    "place_columns": _of_job(PLACE),
    "saved_columns": ", ".join(SAVED),
    "saved_marks": ", ".join("?" * len(SAVED)),
    "saved_values": ", ".join(f"{name} = changed.{name}" for name in ("stage", *CHANGING)),
}
"""The lists of columns that blocks of SQL include."""


@lru_cache(maxsize=64)
def insert_block(columns: tuple[str, ...], own: int) -> str:
    """Returns the INSERT that `Tx.insert_block` describes (backends/sql/tx.py)."""
    names, marks = ", ".join(columns), ", ".join("?" * own)
    if own == len(columns):
        return f"INSERT INTO job ({names}) VALUES ({marks}) /* each row */"  # noqa: S608  the names are ours
    each, shared = ", ".join(columns[:own]), ", ".join("?" * (len(columns) - own))
    return (
        f"WITH own ({each}) AS (VALUES ({marks}) /* each row */) "  # noqa: S608  the names are ours
        f"INSERT INTO job ({names}) SELECT {each}, {shared} FROM own"
    )
