"""The one row of the table meta, which every job needs: the last seq, the epoch, and the count of control changes."""

from __future__ import annotations

from typing import NoReturn

from ropewalk.backends.sql.tx import Tx
from ropewalk.errors import StoreRefused


def epoch_and_control(tx: Tx) -> tuple[int, int]:
    found = tx.row(tx.sql.epoch)
    assert found is not None
    epoch, control = found
    check_numbers(epoch, control)
    return epoch, control


def check_numbers(epoch: object, control: object) -> None:
    """Raises StoreRefused where a column holds something else than a number, which SQLite lets anybody write."""
    if type(epoch) is not int:
        refuse_damaged("epoch")
    if type(control) is not int:
        refuse_damaged("control")


def refuse_damaged(column: str) -> NoReturn:
    raise StoreRefused(
        f"the only row of table meta cannot be read: {column} is no integer, so no job can be enqueued or claimed; "
        "repair that column (last_seq: the largest seq in table job, at least; epoch and control: more than they were)"
    )
