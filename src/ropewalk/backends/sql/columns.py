"""The columns of the job table: every list of them, in Python and in SQL, is made from the fields of JobRecord.

A field of JobRecord that is in none of the sets below is an optional column, which is written when the job is submitted
and never changes. Each dialect writes these lists in its own SQL (`sqlite/columns.py`, `postgres/columns.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, inspect, structs

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.time import SMALL_MAX

Kind: TypeAlias = Literal["number", "small number", "text", "json", "bytes"]

_SET_LATER: Final = frozenset(
    {
        *("status", "last_move", "run", "rev", "attempt", "crashes", "fence", "owner", "ticket", "lease_expires_at"),
        *("start_rev", "started_at", "finished_at", "progress", "checkpoint", "result", "error", "cancel"),
    }
)
"""In a new job these columns have the defaults of the table, so that its INSERT does not name them."""

_CHANGING: Final = frozenset(
    {
        *("status", "last_move", "priority", "prio_key", "time_key", "run_at", "updated_at", "flags", "run", "rev"),
        *("attempt", "crashes", "owner", "lease_expires_at", "start_rev", "started_at", "finished_at", "deadline"),
        *("chain_id", "chain_index", "unmet", "gate", "awaits", "wake_at"),
        *("progress", "error", "cancel", "input", "checkpoint", "result"),
    }
)
"""The fields that the domain may change in a record that is stored. Leases are taken and renewed by statements of their
own, which is why `fence` and `ticket` are not among them."""

_LAST_OF_HEAD: Final = "trace"


class Column(Struct, frozen=True):
    """One column of the job table."""

    name: str
    type: Any
    """Its values are decoded as this type."""
    kind: Kind
    """It determines the type of the column in each dialect."""
    nullable: bool
    """Whether the field may be None."""
    default: object
    """This is the default of the field. NULL in a column of JSON stands for it, too."""


def _column(field: structs.FieldInfo) -> Column:
    found = inspect.type_info(field.type)
    nullable = isinstance(found, inspect.UnionType)
    if isinstance(found, inspect.UnionType):
        [found] = [each for each in found.types if not isinstance(each, inspect.NoneType)]
    return Column(field.name, field.type, _kind(found), nullable, field.default)


def _kind(found: inspect.Type) -> Kind:
    match found:
        case inspect.IntType(le=most):
            return "small number" if most == SMALL_MAX else "number"
        case inspect.StructType() | inspect.DictType():
            return "json"
        case inspect.BytesType():
            return "bytes"
        case _:
            return "text"


COLUMNS: Final = {field.name: _column(field) for field in structs.fields(JobRecord) if field.name != "damaged"}
"""The columns by name, in the order of JobRecord's fields. The field `damaged` is never stored."""

_NAMES: Final = tuple(COLUMNS)
_BYTES: Final = frozenset(name for name, column in COLUMNS.items() if column.kind == "bytes")

HEAD: Final = _NAMES[: _NAMES.index(_LAST_OF_HEAD) + 1]
"""The columns that every job has, in the order in which a record is decoded from an array."""

PLACE: Final = ("scope_id", "group_id", "parent_id", "spawn_key", "limit_key")
"""The columns that say where a job belongs. They are read apart, because every job of a group of 100 000 has them and
would otherwise need all of `OTHERS`."""

OTHERS: Final = tuple(name for name in _NAMES if name not in {*HEAD, *PLACE, *_BYTES})
"""The columns that most jobs do not use."""

ZERO_BY_DEFAULT: Final = tuple(name for name in OTHERS if COLUMNS[name].default == 0)
"""Those of `OTHERS` whose default is 0. A job uses one of these columns if its value is above 0, and any other of
`OTHERS` if its value is not NULL."""

JSON: Final = frozenset(name for name, column in COLUMNS.items() if column.kind == "json")
"""The columns that contain JSON text."""

INSERTED_ALWAYS: Final = tuple(name for name in HEAD if name not in {*_SET_LATER, "input", _LAST_OF_HEAD})
"""The columns that are inserted for every new job, beside its input, its stage and its lane."""

INSERTED_IF_USED: Final = tuple(name for name in _NAMES if name not in {*_SET_LATER, *INSERTED_ALWAYS, "input"})
"""The columns that are inserted only if some job of a batch uses them."""

CHANGING: Final = tuple(name for name in _NAMES if name in _CHANGING)
"""The columns that are written when a record is saved, beside its stage."""

SAVED: Final = ("seq", "fence", "stage", *CHANGING)
"""The values that are sent to save a row; the first two identify it."""

SHARED_IN_LANE: Final = HEAD[HEAD.index("id") + 1 : HEAD.index("priority")]
"""The columns that a claim reads and in which all ready jobs of one lane have the same values."""

AS_READY: Final[Mapping[str, str | int | None]] = {
    "input": "",
    "status": Status.WAITING.value,
    "last_move": Move.SUBMIT.value,
    "updated_at": 0,
    "owner": None,
    "ticket": 0,
    "lease_expires_at": None,
    "start_rev": 0,
    "started_at": None,
}
"""The values that a claim reads in place of these columns of a ready job, because it is about to set them; bytes are
read apart."""
