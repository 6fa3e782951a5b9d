"""Prints the demo: with live bars on a terminal, as plain lines into a pipe, or not at all with --json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from ropewalk.cli import render
from ropewalk.cli.demo.findings import Sentence, Tone, name, percent
from ropewalk.client.views.jobs import JobInfo
from ropewalk.domain.jobs.states import State

STYLES: Final[dict[Tone, str]] = {"plain": "", "good": "green", "bad": "bold red", "note": "yellow"}


class Screen(Protocol):
    """Where the demo prints what happens."""

    def heading(self, text: str) -> None:
        """Print a heading."""
        ...

    def say(self, sentence: Sentence) -> None:
        """Print one event with the time since the demo began."""
        ...

    def progress(self, jobs: Sequence[JobInfo]) -> None:
        """Show the progress of the jobs that report it."""
        ...

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a table."""
        ...

    def line(self, text: str, tone: Tone = "plain") -> None:
        """Print a line without a time."""
        ...

    def close(self) -> None:
        """Remove the bars."""
        ...


class Silent(Screen):
    """A screen that prints nothing, for --json."""

    def heading(self, text: str) -> None:
        pass

    def say(self, sentence: Sentence) -> None:
        pass

    def progress(self, jobs: Sequence[JobInfo]) -> None:
        pass

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        pass

    def line(self, text: str, tone: Tone = "plain") -> None:
        pass

    def close(self) -> None:
        pass


class Plain(Silent):
    """A screen that prints a line for each event without control characters, for pipes and log files."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed

    def heading(self, text: str) -> None:
        render.echo(f"\n{text}")

    def say(self, sentence: Sentence) -> None:
        render.echo(f"{self._elapsed():5.1f} s  {sentence.text}")

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        render.echo_table(header, rows)

    def line(self, text: str, tone: Tone = "plain") -> None:
        render.echo(text)


class Live(Screen):
    """A screen on a terminal, where events scroll above one bar for each long job."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        self._elapsed = elapsed
        self._console = Console(highlight=False)
        self._bars = Progress(
            TextColumn("        {task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("[dim]{task.fields[state]}"),
            console=self._console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._bars.start()

    def heading(self, text: str) -> None:
        self._console.print(f"\n[bold]{text}[/]")

    def say(self, sentence: Sentence) -> None:
        # In a grid, a long sentence continues below its beginning and not below the time.
        grid = Table.grid(padding=(0, 2))
        grid.add_column(justify="right", width=6, style="dim")
        grid.add_column()
        grid.add_row(f"{self._elapsed():.1f} s", Text(sentence.text, style=STYLES[sentence.tone]))
        self._console.print(grid)

    def progress(self, jobs: Sequence[JobInfo]) -> None:
        for job in jobs:
            if job.id not in self._tasks and (job.progress is None or job.terminal):
                continue
            if job.id not in self._tasks:
                self._tasks[job.id] = self._bars.add_task(f"{name(job):<24}", total=100, state="")
            self._bars.update(
                self._tasks[job.id],
                completed=100 if job.state is State.COMPLETED else percent(job),
                state="" if job.worker is None else f"worker {job.worker[:4]}",
                visible=not job.terminal,
            )

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in header:
            table.add_column(column)
        for row in rows:
            table.add_row(*(Text.from_ansi(cell) for cell in row))
        self._console.print(table)

    def line(self, text: str, tone: Tone = "plain") -> None:
        self._console.print(Text(text, style=STYLES[tone]))

    def close(self) -> None:
        self._bars.stop()
