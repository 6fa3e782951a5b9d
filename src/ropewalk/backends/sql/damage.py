"""Damaged rows, which cannot be decoded, and how everything else goes on without them.

Statements read rows in batches, so one row with junk in a column fails the statement or its decoding for the whole
batch. Healthy rows pay nothing for that: only when it happens the same work runs again *carefully*
(connection_thread.py). Careful statements let junk pass (blocks.py), and what they read is decoded row by row.

- A waiting job is set aside before the work is repeated: it becomes a dead letter whose error names the columns.
- A job that runs or has ended is read as far as possible; `damaged` in the record names the unreadable columns.
- Any other row is left out, and the log names its table.

A value that can be decoded may still be out of range or contradict another one. Ranges belong to the types that are
decoded (domain/time.py). Contradictions are checked only while reading carefully, which also happens after an assertion
of the domain failed (`may_be_damage`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast, get_args

import msgspec
from msgspec import Struct, structs

from ropewalk.backends.workflow.culprit import Culprit, is_unexpected

if TYPE_CHECKING:
    from collections.abc import Generator

    from ropewalk.backends.sql.tx import Tx

R = TypeVar("R")
T = TypeVar("T")

_log: Final = logging.getLogger("ropewalk.store")
_raw: Final = msgspec.json.Decoder(list[msgspec.Raw])
_object: Final = msgspec.json.Decoder(dict[str, Any])
_array: Final = msgspec.json.Decoder(list[Any])
_raw_by_name: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class DamagedJobs(Exception):
    """Jobs whose rows must be set aside before the work that met them can go on."""

    def __init__(self, seqs: frozenset[int]) -> None:
        super().__init__(f"the rows of {len(seqs)} jobs cannot be read")
        self.seqs = seqs


@contextmanager
def carefully(tx: Tx, known: frozenset[int] | None, passed_over: Iterable[Culprit] = ()) -> Generator[None]:
    """Has a transaction read carefully inside this context. `known` are the damaged jobs that the work may read; None
    means all. `passed_over` are records that the work leaves as they are."""
    before = tx.sql
    tx.sql, tx.careful, tx.known_damage, tx.left_out = tx.careful_sql, True, known, set()
    tx.passed_over = frozenset((each.kind, each.number) for each in passed_over)
    try:
        yield
    finally:
        tx.sql, tx.careful, tx.known_damage, tx.passed_over = before, False, frozenset(), frozenset()


def careful(
    work: Callable[[Tx], T], known: frozenset[int] | None, passed_over: Iterable[Culprit] = ()
) -> Callable[[Tx], T]:
    """Returns a function that does this work and reads carefully."""

    def read_carefully(tx: Tx) -> T:
        if tx.careful:  # and it knows by now what is damaged, and what to pass over
            return work(tx)
        with carefully(tx, known, passed_over):
            return work(tx)

    return read_carefully


class Rows(Generic[R]):
    """Decodes a list of rows. If the transaction reads carefully, rows that cannot be read are left out.

    If the rows are decoded as a Struct, only the columns that cannot be read are left out, provided that they may be
    None or have defaults; `stand_in` is called with their names. `strict=False` decodes SQLite's 0 and 1 as booleans.
    """

    def __init__(
        self,
        table: str,
        row: type[R],
        *,
        strict: bool = True,
        stand_in: Callable[[R, Sequence[str]], None] | None = None,
    ) -> None:
        self._table = table
        self._row = row
        self._all = msgspec.json.Decoder[list[R]](list.__class_getitem__(row), strict=strict)
        self._one = msgspec.json.Decoder(row, strict=strict)
        self._stand_in = stand_in

    def decode(self, tx: Tx, found: bytes | str) -> list[R]:
        """Decodes the answer of a statement."""
        try:
            rows: list[R] = self._all.decode(found)
        except msgspec.DecodeError:
            if not tx.careful:
                raise
        else:
            return rows
        return [row for raw in _raw.decode(found) if (row := self._decoded(tx, raw)) is not None]

    def _decoded(self, tx: Tx, raw: msgspec.Raw) -> R | None:
        try:
            return self._one.decode(raw)
        except msgspec.DecodeError as error:
            log_left_out(tx, self._table, error)
        return self._in_part(raw) if _is_struct(self._row) else None

    def _in_part(self, raw: msgspec.Raw) -> R | None:
        fields = structs.fields(cast("type[Struct]", self._row))
        whole = bytes(raw)
        if whole.startswith(b"["):
            given = dict(zip((field.encode_name for field in fields), _array.decode(whole), strict=False))
        elif whole.startswith(b"{"):
            given = _object.decode(whole)
        else:
            return None
        read: dict[str, Any] = {}
        unread: list[str] = []
        for field in fields:
            try:
                read[field.name] = msgspec.convert(given.get(field.encode_name), field.type)
            except msgspec.ValidationError:
                unread.append(field.name)
                if NoneType in get_args(field.type):
                    read[field.name] = None
                elif field.required:
                    return None
        row = self._row(**read)
        if self._stand_in is not None:
            self._stand_in(row, unread)
        return row


def _is_struct(row: object) -> bool:
    return isinstance(row, type) and issubclass(row, Struct)


class RowsByName(Generic[R]):
    """Decodes rows that a statement returns by their names; a row that cannot be read is left out as in Rows."""

    def __init__(self, table: str, row: type[R]) -> None:
        self._table = table
        self._all = msgspec.json.Decoder[dict[str, R]](dict.__class_getitem__((str, row)))
        self._one = msgspec.json.Decoder(row)

    def decode(self, tx: Tx, found: bytes | str) -> dict[str, R]:
        """Decodes the answer of a statement."""
        try:
            rows: dict[str, R] = self._all.decode(found)
        except msgspec.DecodeError:
            if not tx.careful:
                raise
        else:
            return rows
        rows = {}
        for name, raw in _raw_by_name.decode(found).items():
            try:
                rows[name] = self._one.decode(raw)
            except msgspec.DecodeError as error:
                log_left_out(tx, self._table, error)
        return rows


def log_left_out(tx: Tx, table: str, error: Exception) -> None:
    """Logs that a row was left out, once for each kind of damage and not every time the row is read. The table is noted
    in the transaction."""
    tx.left_out.add(table)
    _log_once(table, str(error))


@lru_cache(maxsize=256)
def _log_once(table: str, message: str) -> None:
    _log.error("a row of table %s cannot be read and is left out: %s; repair or delete it", table, message)


def log_set_aside(job_id: str, columns: Sequence[str]) -> None:
    """Logs that a job was set aside."""
    _log.error("job %s was set aside: its stored %s cannot be read", job_id, ", ".join(columns))


def decoded_error(error: BaseException) -> bool:
    """Whether this error means that the answer of a statement could not be decoded."""
    return isinstance(error, msgspec.DecodeError | UnicodeDecodeError)


def may_be_damage(error: BaseException) -> bool:
    """Whether a row that can be decoded may have caused this error: it contradicts its lane (DamagedJobs, from a claim
    that did not read carefully), or an assertion of the domain failed.

    Reading carefully decides this, because it also compares the values of a row with one another (damaged_jobs.py).
    """
    return isinstance(error, DamagedJobs) or is_unexpected(error)


def ids_of(found: bytes | str) -> list[Any]:
    """Returns the first column of every row, whatever the other columns contain."""
    return [msgspec.json.decode(raw)[0] for raw in _raw.decode(found)]
