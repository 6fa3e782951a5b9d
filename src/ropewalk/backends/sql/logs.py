"""The lines that jobs logged. Each is written once, with a renewal or a settlement, and only the newest lines of a job
stay in the store. Jobs that log nothing cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ropewalk.backends.sql.damage import Rows
from ropewalk.backends.sql.tx import Row, Tx
from ropewalk.domain.logs import LINES_MAX, LogLine, may_be_too_many

_lines = Rows("log", LogLine)


class Logged(Protocol):
    """A renewal or a settlement whose lease is valid."""

    @property
    def seq(self) -> int: ...
    @property
    def fence(self) -> int: ...
    @property
    def lines(self) -> Sequence[LogLine]: ...


def write(tx: Tx, written: Iterable[Logged]) -> None:
    """Writes the log lines of renewals and settlements, and deletes the oldest if a job has too many."""
    logged = [each for each in written if each.lines]
    if not logged:
        return
    tx.run_rows(tx.sql.insert_lines, [_row(each, line) for each in logged for line in each.lines])
    for each in logged:
        if may_be_too_many(each.fence, each.lines):
            tx.run(tx.sql.trim_lines, (each.seq, each.seq, LINES_MAX))


def lines_of(tx: Tx, tenant: str, job_id: str) -> list[LogLine]:
    """Returns the log lines of a job."""
    seq = tx.value(tx.sql.seq_of_id, (job_id, tenant))
    return [] if seq is None else _lines.decode(tx, tx.value(tx.sql.lines_of, (seq,)))


def _row(of: Logged, line: LogLine) -> Row:
    return of.seq, of.fence, line.position, line.attempt, line.at, line.level, line.message, line.fields
