"""`ropewalk worker`: run an app's jobs until somebody says stop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import click

from ropewalk.app import App
from ropewalk.cli.command import Command, json_option
from ropewalk.cli.drain_watch import DrainWatch
from ropewalk.cli.errors import ExitCode
from ropewalk.cli.loading import load_app
from ropewalk.cli.worker_log import LEVELS, Banner, log_events, start_logging
from ropewalk.engine.worker import Worker

EXAMPLES: Final = (
    "ropewalk worker shop:app                       # `app = App(...)` in shop.py",
    "ropewalk worker shop:app --queue mail --queue images --concurrency 50",
    "ropewalk worker shop:app --type encode_video --concurrency 2 --grace 300",
)


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("app_path", metavar="MODULE:APP", envvar="ROPEWALK_APP")
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="Only this queue. Repeatable.")
@click.option("--type", "types", multiple=True, metavar="NAME", help="Only this job type. Repeatable.")
@click.option("--tenant", "tenants", multiple=True, metavar="NAME", help="Only this tenant. Repeatable.")
@click.option("--concurrency", type=int, default=10, show_default=True, help="How many jobs at a time.")
@click.option("--grace", type=float, default=30, show_default=True, metavar="SECONDS", help="To finish when stopped.")
@click.option(
    "--lease",
    type=float,
    default=None,
    metavar="SECONDS",
    help="After this silence others take over (the app's default, else 30).",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="Of what is logged.")
@json_option
def worker(
    app_path: str,
    *,
    queues: Sequence[str],
    types: Sequence[str],
    tenants: Sequence[str],
    concurrency: int,
    grace: float,
    lease: float | None,
    log_level: str,
    as_json: bool,
) -> ExitCode:
    """Run the jobs of an app until told to stop.

    The app is given as MODULE:APP or in $ROPEWALK_APP. The worker says on stdout who it is, and then logs a line to
    stderr for each thing that happens. SIGTERM or Ctrl-C drain it: nothing new is started, what runs may finish within
    --grace seconds, the rest is given back to others without losing an attempt. A second one does not wait. It exits 0
    after a drain; 1 if a handler did not end and had to be left behind; 3 if it gave up because the store stayed away.
    """
    app = load_app(app_path)
    made = app.worker(
        queues=queues or None,
        types=types or None,
        tenants=tenants or None,
        concurrency=concurrency,
        grace=grace,
        lease=lease,
    )
    start_logging(log_level)
    banner = Banner(app, types or app.registry.names(), concurrency, as_json=as_json)
    return asyncio.run(_serve(app, made, banner, DrainWatch(grace)))


async def _serve(app: App, worker: Worker, banner: Banner, watch: DrainWatch) -> ExitCode:
    async with app, log_events(app):
        await watch.run(worker, on_started=banner.show)
    return ExitCode.OK
