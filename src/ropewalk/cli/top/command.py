"""The command `ropewalk top`, which prints only one frame without a terminal or with --once."""

from __future__ import annotations

import asyncio
import shutil
import sys
from typing import Final

import click
from rich.console import Console

from ropewalk.app import App
from ropewalk.cli import render
from ropewalk.cli.command import Command, json_option
from ropewalk.cli.target import Target, target_options
from ropewalk.cli.top.controls import View
from ropewalk.cli.top.frame import frame
from ropewalk.cli.top.snapshot import Snapshot, document
from ropewalk.cli.top.snapshot_reader import SnapshotReader
from ropewalk.client.store_client import StoreClient
from ropewalk.runtime.system import SystemRuntime

LAST_SECONDS: Final = 1800.0
"""The default of --last."""


@click.command(
    cls=Command,
    examples=[
        "ropewalk top --app shop:app",
        "ropewalk top --url sqlite:///jobs.db --last 300 --interval 5",
        "ropewalk top --once --app shop:app    # one frame, for a log or a mail",
    ],
)
@target_options
@click.option(
    "--interval",
    type=click.FloatRange(0.5, 60),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between two refreshes.",
)
@click.option(
    "--last",
    type=click.FloatRange(60, 86_400),
    default=LAST_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Seconds until now that the plot and the table of types cover.",
)
@click.option("--once", is_flag=True, help="Print one frame and end; this is the default without a terminal.")
@json_option
def top(target: Target, *, interval: float, last: float, once: bool, as_json: bool) -> None:
    """Watch queues, types, workers and failures live.

    Rates and durations cover the last half hour, or --last; the numbers of finished and queued jobs per second cover
    the last few seconds. Keys: q quits, the arrow keys select a queue, p pauses or resumes it, + and - refresh more or
    less often.
    """
    app = target.app()

    async def work(client: StoreClient) -> None:
        reader = _reader(app, client, target.tenant, last)
        if once or as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _print(await reader.read(), as_json=as_json)
            return
        from ropewalk.cli.top.screen import show  # imports termios, which not every system has

        await show(client, reader, SystemRuntime(), View(every=interval), descriptor=sys.stdin.fileno())

    asyncio.run(target.within(app, work))


def _reader(app: App, client: StoreClient, tenant: str, last_seconds: float) -> SnapshotReader:
    return SnapshotReader(client, client, SystemRuntime(), url=app.url, tenant=tenant, last_seconds=last_seconds)


def _print(snapshot: Snapshot, *, as_json: bool) -> None:
    if as_json:
        render.echo_json(document(snapshot))
        return
    width = shutil.get_terminal_size().columns
    Console(width=width, highlight=False).print(frame(snapshot, width=width, height=None, every=None), soft_wrap=True)
