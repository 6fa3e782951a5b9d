"""Writes the lists of columns of the job table (backends/sql/columns.py) in the SQL of PostgreSQL.

A job has two rows here. The row in `submitted` stays as it is, and the row in `job_by_stage` moves from stage to stage.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from typing import Final

import msgspec

from ropewalk.backends.sql.columns import (
    AS_READY,
    CHANGING,
    COLUMNS,
    HEAD,
    JSON,
    OTHERS,
    PLACE,
    SAVED,
    SHARED_IN_LANE,
    ZERO_BY_DEFAULT,
    Kind,
)

_TYPES: Final[dict[Kind, str]] = {
    "number": "bigint",
    "small number": "integer",
    "text": "text",
    "json": "text",
    "bytes": "bytea",
}
_REWRITTEN: Final = ("input", "chain_id", "chain_index")
"""Columns that may change but are in the row in `submitted`, because they rarely do."""
_MOVES: Final = frozenset({"seq", "stage", "created_at", "max_attempts", "format", *CHANGING}.difference(_REWRITTEN))
"""Columns in the row in `job_by_stage`; the others are in the row in `submitted`."""


def _type(column: str) -> str:
    if column == "stage":
        return "smallint"
    return "bigint" if column == "lane" else _TYPES[COLUMNS[column].kind]


def _value(name: str) -> str:
    if name not in JSON:
        return name
    return f"{name}::json" if COLUMNS[name].nullable else f"coalesce({name}, '{{}}')::json"


def _saved(name: str) -> str:
    """Returns the expression for the value that is sent for this column of a saved row (statements.py)."""
    return f"each({SAVED.index(name) + 1} {_type(name)})"


def _as_json_text(name: str) -> str:
    """Returns the column as JSON text, to be joined by concat_ws, which takes half the time of the functions for
    JSON."""
    column = COLUMNS[name]
    value = f"to_json({name})" if column.kind == "text" else name
    return f"coalesce({value}::text, 'null')" if column.nullable else value


def _ready_text(names: Iterable[str]) -> str:
    texts: list[str] = []
    for is_constant, run in groupby(names, key=AS_READY.__contains__):
        if is_constant:
            constants = msgspec.json.encode([AS_READY[name] for name in run]).decode()
            texts.append(f"'{constants[1:-1]}'")
        else:
            texts += map(_as_json_text, run)
    return ", ".join(texts)


PARTS: Final = {
    "head_values": ", ".join("''" if name == "input" else name for name in HEAD),
    "ready_of_lane": _ready_text(SHARED_IN_LANE),
    "ready_of_its_own": _ready_text(HEAD[HEAD.index(SHARED_IN_LANE[-1]) + 1 :]),
    "other_values": ", ".join(f"'{name}', {_value(name)}" for name in OTHERS),
    "has_counts": " OR ".join(f"{name} > 0" for name in ZERO_BY_DEFAULT),
    "nullable_others": ", ".join(name for name in OTHERS if name not in ZERO_BY_DEFAULT),
    "place_columns": ", ".join(PLACE),
    "saved_values": ", ".join(f"{name} = {_saved(name)}" for name in ("stage", *CHANGING) if name not in _REWRITTEN),
    "crashed_saved": f"({_saved('crashes')} > 0)::integer",
    "rewritten_columns": ", ".join(_REWRITTEN),
    "rewritten_saved": ", ".join(map(_saved, _REWRITTEN)),
    "rewritten_values": ", ".join(f"{name} = {_saved(name)}" for name in _REWRITTEN),
}
"""The lists of columns that blocks of SQL include."""


@lru_cache(maxsize=64)
def insert_block(columns: tuple[str, ...], own: int, next_seq: str) -> str:
    """Returns the INSERT into both tables that `Tx.insert_block` describes (backends/sql/tx.py)."""
    arrays, names = ", ".join(f"%s::{_type(name)}[]" for name in columns[:own]), ", ".join(columns[:own])
    shared = ", ".join(f"%s::{_type(name)} AS {name}" for name in columns[own:])
    given = f", shared AS (SELECT {shared})" if shared else ""
    source = "own CROSS JOIN shared" if shared else "own"
    number, unchanged = "", ""
    if "seq" not in columns:
        number, columns = f"{next_seq} AS seq, ", ("seq", *columns)
        unchanged = " WHERE (SELECT control FROM meta) = %s::bigint"
    stays = ", ".join(name for name in columns if name == "seq" or name not in {*_MOVES, "lane"})
    moves = ", ".join(name for name in columns if name in _MOVES)
    return (
        f"WITH own AS MATERIALIZED ("  # noqa: S608  the names are ours
        f"SELECT {number}own.* FROM unnest({arrays}) AS own ({names}){unchanged}){given}, "
        f"kept AS (INSERT INTO submitted ({stays}) SELECT {stays} FROM {source}) "
        f"INSERT INTO job_by_stage ({moves}, sublane) SELECT {moves}, 2 * lane FROM {source}"
    )
