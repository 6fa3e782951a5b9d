"""One performance of the demo: a temporary directory, a fleet in it, the story told, everything cleaned up."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from ropewalk import App
from ropewalk.cli import render
from ropewalk.cli.demo.findings import Findings
from ropewalk.cli.demo.fleet import Fleet
from ropewalk.cli.demo.jobs import TYPES
from ropewalk.cli.demo.promises import promises
from ropewalk.cli.demo.screen import Live, Plain, Screen, Silent
from ropewalk.cli.demo.story import Story
from ropewalk.cli.demo.summary import document, show_summary
from ropewalk.cli.errors import ExitCode
from ropewalk.runtime.system import SystemRuntime


def perform(*, as_json: bool) -> ExitCode:
    # However it is told to end, it ends as with Ctrl-C: by cleaning up.
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _interrupt)
    with tempfile.TemporaryDirectory(prefix="ropewalk-demo-") as directory:
        kept = asyncio.run(_perform(Path(directory), as_json=as_json))
    return ExitCode.OK if kept else ExitCode.FAILED


async def _perform(directory: Path, *, as_json: bool) -> bool:
    runtime = SystemRuntime()
    began = runtime.monotonic()

    def elapsed() -> float:
        return runtime.monotonic() - began

    screen = _screen(elapsed, as_json=as_json)
    try:
        found = await _told(directory, screen, runtime)
    finally:
        screen.close()
    checked = promises(found)
    if as_json:
        render.echo_json(document(found, checked, elapsed()))
    else:
        show_summary(screen, found.jobs, checked)
    return all(promise.kept for promise in checked)


async def _told(directory: Path, screen: Screen, runtime: SystemRuntime) -> Findings:
    url = f"sqlite:///{quote(str(directory / 'demo.db'))}"
    async with App(url, jobs=TYPES) as app:
        with Fleet(directory, url) as fleet:
            return await Story(app, fleet, screen, runtime).tell()


def _interrupt(_signal: int, _frame: object) -> None:
    signal.raise_signal(signal.SIGINT)


def _screen(elapsed: Callable[[], float], *, as_json: bool) -> Screen:
    if as_json:
        return Silent()
    return Live(elapsed) if sys.stdout.isatty() else Plain(elapsed)
