"""What the commands print: aligned tables and details for people, one JSON document for machines.

Stored text is data: control characters in it are shown escaped, so that no job can speak to somebody's terminal.
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
    """Colours only where a terminal shows them, and nobody asked for none."""
    click.echo(text, color=False if os.environ.get("NO_COLOR") else None)


def echo_json(document: object) -> None:
    click.echo(msgspec.json.format(to_json(document), indent=2))


def to_json(value: object) -> str:
    return msgspec.json.encode(plain(value)).decode()


def plain(value: object) -> object:
    """As JSON can say it, timestamps in ISO 8601; what it has no form for is shown as its text."""
    try:
        built: object = msgspec.to_builtins(value, str_keys=True, enc_hook=str)
        msgspec.json.encode(built)
    except (TypeError, ValueError, RecursionError):  # a key that is a tuple, half a surrogate pair, a ring
        return ascii(value)
    return built


def echo_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their widest cell. A cell may be styled: its width is that of its text."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(_width(row[column]) for row in cells) for column in range(len(header))]
    for number, row in enumerate(cells):
        line = "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        echo(click.style(line, bold=True) if number == 0 else line)


def echo_details(pairs: Iterable[tuple[str, str | None]]) -> None:
    """One `name  value` a line; None leaves the line out, further lines of a value are indented like its first."""
    shown = [(name, value) for name, value in pairs if value is not None]
    width = max(len(name) for name, _ in shown)
    for name, value in shown:
        first, *rest = value.splitlines() or [""]
        echo(f"{click.style(f'{name:<{width}}', bold=True)}  {first}")
        for line in rest:
            echo(f"{'':{width}}  {line}")


def state(value: State) -> str:
    return click.style(value.value, fg=COLOURS[value])


def safe(text: str) -> str:
    """Stored text on one line, control characters escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def safe_lines(text: str) -> str:
    return "\n".join(safe(line) for line in text.splitlines())


def moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def span(seconds: float) -> str:
    """A duration in the unit a person would say it in."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f} s"


def _width(cell: str) -> int:
    return len(click.unstyle(cell))
