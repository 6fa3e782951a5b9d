"""The tables of a frame: their columns, and their rows as cells with control characters escaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from ropewalk.cli import render
from ropewalk.cli.top import figures
from ropewalk.cli.top.snapshot import FailureLine, QueueLine, Snapshot, TypeLine, WorkerLine

STATES: Final = {"alive": "green", "draining": "yellow", "dead": "red", "active": "green", "paused": "yellow"}
QUIET: Final = "dim"
LOUD: Final = "red"


class Column(Struct, frozen=True):
    """A column of a table."""

    title: str
    width: int
    side: Literal["left", "right"] = "right"
    from_width: int = 0
    """Width of the frame from which on the column is shown."""
    grows: bool = False
    """Whether the column gets the width that the others leave."""


class Cell(Struct, frozen=True):
    """A text in a style of rich."""

    text: str
    style: str = ""


class Section(Struct, frozen=True):
    """A table of a frame."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    nothing: str
    """The text that is shown if there are no rows."""
    selected: int | None = None
    """The number of the selected row, or None."""
    whole: bool = True
    """Whether a line says how many rows are not shown."""


def queues(snapshot: Snapshot, selected: int | None) -> Section:
    """Return the table of queues."""
    columns = (
        Column("QUEUE", 12, "left", grows=True),
        Column("STATE", 6, "left"),
        Column("READY", 7),
        Column("RUNNING", 7),
        Column("DELAYED", 7, from_width=60),
        Column("RETRYING", 8, from_width=70),
        Column("PENDING", 7, from_width=90),
        Column("OLDEST", 8),
    )
    return Section(columns, [_queue(each) for each in snapshot.queues], "no queue has jobs that wait or run", selected)


def types(snapshot: Snapshot) -> Section:
    """Return the table of job types that finished jobs lately."""
    columns = (
        Column("TYPE", 12, "left", grows=True),
        Column("FINISHED", 8),
        Column("RATE", 9),
        Column("FAILED", 7),
        Column("RETRIED", 7, from_width=90),
        Column("RUN p50", 8, from_width=60),
        Column("RUN p99", 8, from_width=70),
        Column("WAIT p50", 8, from_width=90),
        Column("WAIT p99", 8, from_width=80),
    )
    return Section(columns, [_type(each) for each in snapshot.types], "nothing has finished lately")


def workers(snapshot: Snapshot) -> Section:
    """Return the table of workers."""
    columns = (
        Column("WORKER", 16, "left"),
        Column("WHERE", 12, "left", grows=True, from_width=60),
        Column("STATE", 8, "left"),
        Column("HOLDS", 6),
        Column("SLOTS", 6),
        Column("LAST SIGN", 9, from_width=70),
        Column("UP", 8, from_width=80),
        Column("SERVES", 28, "left", from_width=110),
    )
    rows = [_worker(each) for each in snapshot.workers]
    return Section(columns, rows, "no workers: start one with `ropewalk worker module:app`")


def failures(snapshot: Snapshot) -> Section:
    """Return the table of the newest failures."""
    columns = (
        Column("FAILED AT", 9, "left"),
        Column("TYPE", 14, "left"),
        Column("STATE", 11, "left", from_width=60),
        Column("ERROR", 20, "left", grows=True),
        Column("ID", 36, "left", from_width=110),
    )
    rows = [_failure(each) for each in snapshot.failures]
    return Section(columns, rows, "nothing has failed lately", whole=False)


def _queue(queue: QueueLine) -> list[Cell]:
    state = "paused" if queue.paused else "active"
    return [
        Cell(render.safe(queue.name)),
        Cell(state, STATES[state]),
        _number(queue.ready),
        _number(queue.running),
        _number(queue.delayed),
        _number(queue.retrying),
        _number(queue.pending),
        Cell("–", QUIET) if queue.oldest_us is None else Cell(figures.age(queue.oldest_us)),
    ]


def _type(line: TypeLine) -> list[Cell]:
    return [
        Cell(render.safe(line.name)),
        _number(line.finished),
        Cell(figures.rate(line.finished_per_second), "" if line.finished_per_second else QUIET),
        _number(line.failed, LOUD),
        _number(line.retried),
        *(_latency(each, line.run.count) for each in (line.run.p50_us, line.run.p99_us)),
        *(_latency(each, line.wait.count) for each in (line.wait.p50_us, line.wait.p99_us)),
    ]


def _worker(worker: WorkerLine) -> list[Cell]:
    return [
        Cell(worker.id),
        Cell(render.safe(worker.where)),
        Cell(worker.state, STATES[worker.state]),
        _number(worker.held),
        _number(worker.slots),
        Cell(figures.age(worker.silent_us), LOUD if worker.state == "dead" else ""),
        Cell(figures.age(worker.up_us)),
        Cell(render.safe(worker.serves), QUIET),
    ]


def _failure(failure: FailureLine) -> list[Cell]:
    return [
        Cell(figures.clock(failure.at)),
        Cell(render.safe(failure.type)),
        Cell(failure.state, "yellow" if failure.state == "retrying" else LOUD),
        Cell(failure.error),
        Cell(failure.id, QUIET),
    ]


def _number(number: int, style: str = "") -> Cell:
    """Return a count, with 0 in a quiet style, so that other numbers stand out."""
    return Cell(figures.count(number), style if number else QUIET)


def _latency(value: int, measured: int) -> Cell:
    return Cell(figures.span(value)) if measured else Cell("–", QUIET)
