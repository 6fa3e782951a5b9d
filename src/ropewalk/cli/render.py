"""Prints answers of commands: aligned tables and details for people, or one JSON document for programs.

Control characters in stored text are escaped, so that the text of a job cannot control somebody's terminal.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import click
import msgspec

from ropewalk.domain.jobs.states import State

COLOURS: Final = {
    State.PENDING: "cyan",
    State.DELAYED: "cyan",
    State.RETRYING: "yellow",
    State.SCHEDULED: "blue",
    State.RUNNING: "blue",
    State.COMPLETED: "green",
    State.FAILED: "red",
    State.DEAD_LETTER: "red",
    State.CANCELLED: "magenta",
}


def echo(text: str = "") -> None:
    """Print a line, in colours only on a terminal and if $NO_COLOR is not set."""
    click.echo(text, color=False if os.environ.get("NO_COLOR") else None)


def echo_json(document: object) -> None:
    """Print a document as indented JSON."""
    click.echo(msgspec.json.format(to_json(document), indent=2))


def to_json(value: object) -> str:
    """Return any value as JSON on one line."""
    return msgspec.json.encode(plain(value)).decode()


def plain(value: object) -> object:
    """Return the value as JSON types, with timestamps in ISO 8601; what JSON cannot express becomes text."""
    try:
        built: object = msgspec.to_builtins(value, str_keys=True, enc_hook=str)
        msgspec.json.encode(built)
    except (TypeError, ValueError, RecursionError):  # a key that is a tuple, half a surrogate pair, a ring
        return ascii(value)
    return built


def echo_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose columns are as wide as their widest cell; styles of cells do not count."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(_width(row[column]) for row in cells) for column in range(len(header))]
    for number, row in enumerate(cells):
        line = "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        echo(click.style(line, bold=True) if number == 0 else line)


def echo_details(pairs: Iterable[tuple[str, str | None]]) -> None:
    """Print each `name  value` on a line; a value of None is left out, and further lines of a value are indented."""
    shown = [(name, value) for name, value in pairs if value is not None]
    width = max(len(name) for name, _ in shown)
    for name, value in shown:
        first, *rest = value.splitlines() or [""]
        echo(f"{click.style(f'{name:<{width}}', bold=True)}  {first}")
        for line in rest:
            echo(f"{'':{width}}  {line}")


def state(value: State) -> str:
    """Return the word for a state in its colour."""
    return click.style(value.value, fg=COLOURS[value])


def safe(text: str) -> str:
    """Return stored text on one line, with control characters escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def safe_lines(text: str) -> str:
    """Return stored text with its lines, and with other control characters escaped."""
    return "\n".join(safe(line) for line in text.splitlines())


def moment(at: datetime) -> str:
    """Return a time in UTC, to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def span(seconds: float) -> str:
    """Return a duration in the largest unit in which it is at least 2."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"


def _width(cell: str) -> int:
    return len(click.unstyle(cell))
