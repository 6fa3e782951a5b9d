"""Runs the demo in a temporary directory, checks its promises, prints the summary, and cleans up."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ropewalk import App
from ropewalk.cli import render
from ropewalk.cli.demo.findings import Findings
from ropewalk.cli.demo.fleet import Fleet
from ropewalk.cli.demo.jobs import TYPES
from ropewalk.cli.demo.promises import Promise, promises
from ropewalk.cli.demo.scenario import Scenario
from ropewalk.cli.demo.screen import Live, Plain, Screen, Silent
from ropewalk.cli.job_view import presentable
from ropewalk.client.views.jobs import JobInfo
from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.runtime.system import SystemRuntime

NEXT: Final = (
    ("ropewalk worker shop:app", "run the jobs of your own shop.py"),
    ("ropewalk jobs list --app shop:app", "list jobs and their states"),
    ("ropewalk why ID --app shop:app", "explain what a job is waiting for"),
)
"""Commands to try next, each with what it does."""


def show_summary(screen: Screen, jobs: Sequence[JobInfo], promises: Sequence[Promise]) -> None:
    """Print which jobs ran, which promises were kept, and what to try next."""
    screen.heading("What ran")
    screen.table(("TYPE", "JOBS", "STATE", "ATTEMPTS", "CRASHES", "QUEUED TO ENDED"), rows_of(jobs))
    screen.heading("What was promised")
    for promise in promises:
        if promise.kept:
            screen.line(f"✓ {promise.text}", "good")
        else:
            screen.line(f"✗ NOT KEPT: {promise.text}", "bad")
    screen.heading("Try next")
    for command, what in NEXT:
        screen.line(f"{command:<34} {what}")


def document(found: Findings, promises: Sequence[Promise], seconds: float) -> dict[str, object]:
    """Return the summary for JSON."""
    return {
        "kept": all(promise.kept for promise in promises),
        "seconds": round(seconds, 1),
        "enqueued": len(found.enqueued),
        "late_writes_refused": found.late_writes_refused,
        "promises": promises,
        "jobs": [presentable(job) for job in found.jobs],
    }


def rows_of(jobs: Iterable[JobInfo]) -> list[tuple[str, ...]]:
    """Return a row for each type and state, in the order in which the types were first enqueued."""
    order = list(dict.fromkeys((job.type, job.state) for job in jobs))
    ranked = sorted(jobs, key=lambda job: order.index((job.type, job.state)))
    return [_row(list(group)) for _, group in groupby(ranked, lambda job: (job.type, job.state))]


def _row(jobs: list[JobInfo]) -> tuple[str, ...]:
    first = jobs[0]
    spans = [(job.finished_at - job.created_at).total_seconds() for job in jobs if job.finished_at is not None]
    times = ", ".join(render.span(each) for each in spans)
    attempts, crashes = sum(job.attempt for job in jobs), sum(job.crashes for job in jobs)
    return first.type, str(len(jobs)), render.state(first.state), str(attempts), str(crashes or ""), times


def run_demo(*, as_json: bool) -> ExitCode:
    """Run the demo once; the exit code says whether all promises were kept."""
    # Stop signals have the same effect as Ctrl-C: the demo cleans up and ends.
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _interrupt)
    with tempfile.TemporaryDirectory(prefix="ropewalk-demo-") as directory:
        kept = asyncio.run(_run(Path(directory), as_json=as_json))
    return ExitCode.OK if kept else ExitCode.FAILED


async def _run(directory: Path, *, as_json: bool) -> bool:
    runtime = SystemRuntime()
    began = runtime.monotonic()

    def elapsed() -> float:
        return runtime.monotonic() - began

    screen = _screen(elapsed, as_json=as_json)
    try:
        found = await _played(directory, screen, runtime)
    finally:
        screen.close()
    checked = promises(found)
    if as_json:
        render.echo_json(document(found, checked, elapsed()))
    else:
        show_summary(screen, found.jobs, checked)
    return all(promise.kept for promise in checked)


async def _played(directory: Path, screen: Screen, runtime: SystemRuntime) -> Findings:
    url = f"sqlite:///{quote(str(directory / 'demo.db'))}"
    async with App(url, jobs=TYPES) as app:
        with Fleet(directory, url) as fleet:
            return await Scenario(app, fleet, screen, runtime).play()


def _interrupt(_signal: int, _frame: object) -> None:
    signal.raise_signal(signal.SIGINT)


def _screen(elapsed: Callable[[], float], *, as_json: bool) -> Screen:
    if as_json:
        return Silent()
    return Live(elapsed) if sys.stdout.isatty() else Plain(elapsed)
