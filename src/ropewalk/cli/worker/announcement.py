"""Prints what `ropewalk worker` announces on stdout when it has started: one line, or one JSON document."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import to_builtins

from ropewalk.cli import render
from ropewalk.fleet.parent_link import Announcement


def show(announcement: Announcement, *, as_json: bool) -> None:
    """Print the announcement of one worker."""
    if as_json:
        render.echo_json(to_builtins(announcement))
    else:
        render.echo(f"worker {announcement.worker} on {_where(announcement)} at a time")


def show_all(announcements: Sequence[Announcement], *, as_json: bool) -> None:
    """Print the announcements of several workers, which differ only in their ids."""
    first, workers = announcements[0], [each.worker for each in announcements]
    if as_json:
        alike = {name: value for name, value in to_builtins(first).items() if name != "worker"}
        render.echo_json({"workers": workers, **alike})
    else:
        render.echo(f"workers {', '.join(workers)} on {_where(first)} at a time each")


def _where(announcement: Announcement) -> str:
    number = "any number" if announcement.concurrency is None else announcement.concurrency
    return f"{announcement.store} ({announcement.durability}): {', '.join(announcement.types)}; {number}"
