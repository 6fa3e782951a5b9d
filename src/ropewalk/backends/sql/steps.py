"""Durable steps, and the signals that were sent to jobs. Whatever a running attempt writes here names its fence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import structs

from ropewalk.backends.sql.damage import Rows
from ropewalk.backends.sql.records import Pieces, load
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.jobs.lease import LossReason, loss_reason
from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.completion import StepKind, StepRecord
from ropewalk.errors import StoreRefused
from ropewalk.ports.store.leases import Holder
from ropewalk.ports.store.workflows import StepAnswer

READ_AT_ONCE_MAX: Final = 500
"""So many values of 1 MiB fit into one value of SQLite (1 GB)."""

StepRow: TypeAlias = tuple[int, str, StepKind, Instant | None, bool, int | None]

_names = Rows("step", tuple[int, str])
_rows = msgspec.json.Decoder(list[StepRow], strict=False)


def steps_of(tx: Tx, seq: int) -> list[StepRecord]:
    """Returns the steps of a job in the order of their positions."""
    steps: list[StepRecord] = []
    while True:
        page = _page(tx, seq, after=steps[-1].position if steps else -1)
        steps += page
        if len(page) < READ_AT_ONCE_MAX:
            return steps


def record_step(tx: Tx, holder: Holder, step: StepRecord) -> StepAnswer:
    lost = _lost(tx, holder)
    if lost is None:
        _keep(tx, holder, step)
    return StepAnswer(lost=lost)


def take_signal(tx: Tx, holder: Holder, step: StepRecord, signal: str) -> StepAnswer:
    lost = _lost(tx, holder)
    if lost is not None:
        return StepAnswer(lost=lost)
    held = next(iter(_page(tx, holder.seq, after=step.position - 1, limit=1)), None)
    if held is not None and held.position == step.position and held.finished:
        return StepAnswer(taken=held)  # The first answer was lost. The wait has taken its signal and takes no other.
    found = tx.row(tx.sql.oldest_signal, (holder.seq, signal))
    if found is None:
        return StepAnswer()
    position, value = found
    taken = structs.replace(step, value=value, finished=True)
    tx.run(tx.sql.delete_signal, (holder.seq, signal, position))
    _keep(tx, holder, taken)
    return StepAnswer(taken=taken)


def keep_suspension(tx: Tx, seq: int, step: StepRecord) -> None:
    """Records when a wait ends, unless an earlier suspension at the same step has recorded it."""
    _put(tx, tx.sql.put_new_step, seq, step)


def put_signal(tx: Tx, seq: int, name: str, value: bytes | None) -> None:
    tx.run(tx.sql.put_signal, (seq, name, tx.now, value, seq, name))


def signal_arrived(tx: Tx, seq: int, name: str | None) -> bool:
    return name is not None and tx.row(tx.sql.oldest_signal, (seq, name)) is not None


def names_of(tx: Tx, seq: int) -> list[tuple[int, str]]:
    """Returns the position and the name of each step of a job in the order of their positions."""
    return _names.decode(tx, tx.value(tx.sql.step_names, (seq,)))


def forget(tx: Tx, seq: int, from_position: int) -> None:
    tx.run(tx.sql.delete_steps_from, (seq, from_position))


def _page(tx: Tx, seq: int, *, after: int, limit: int = READ_AT_ONCE_MAX) -> Sequence[StepRecord]:
    found = tx.row(tx.sql.steps_of, (seq, after, limit))
    assert found is not None
    values = Pieces(found[1] or b"")
    return [
        StepRecord(
            position=position,
            name=name,
            kind=kind,
            value=None if size is None else values.take(size),
            until=until,
            finished=finished,
        )
        for position, name, kind, until, finished, size in _decoded(tx, seq, found[0])
    ]


def _decoded(tx: Tx, seq: int, found: bytes | str) -> list[StepRow]:
    """Decodes steps. A damaged step is refused and not left out, because the handler would run it again."""
    try:
        return _rows.decode(found)
    except msgspec.DecodeError as error:
        if not tx.careful:
            raise
        raise StoreRefused(
            f"a stored step of job {seq} cannot be read: repair its row in table step ({error})"
        ) from error


def _lost(tx: Tx, holder: Holder) -> LossReason | None:
    """Returns why this lease may not write; None if it may."""
    if tx.row(tx.sql.is_held, (holder.seq, holder.fence, holder.owner)) is not None:
        return None
    return loss_reason(next(iter(load(tx, [holder.seq])), None), holder.fence, holder.owner)


def _keep(tx: Tx, holder: Holder, step: StepRecord) -> None:
    """Writes a step and marks the job as one that has steps, because an attempt reads only the steps of such jobs."""
    tx.run(tx.sql.add_flag, (STEPPED, holder.seq, holder.fence, holder.owner))
    _put(tx, tx.sql.put_step, holder.seq, step)


def _put(tx: Tx, sql: str, seq: int, step: StepRecord) -> None:
    tx.run(sql, (seq, step.position, step.name, step.kind, step.until, int(step.finished), step.value))
