"""A worker in this process: the app loaded, served, and drained when somebody says stop."""

from __future__ import annotations

import asyncio

import click

from ropewalk.cli.announcement import Announcement
from ropewalk.cli.drain_watch import DrainWatch
from ropewalk.cli.errors import ExitCode
from ropewalk.cli.last_moments import hear_no_more
from ropewalk.cli.leash import HURRIED_BY, Leash
from ropewalk.cli.loading import load_app
from ropewalk.cli.worker_log import log_events, start_logging
from ropewalk.cli.worker_options import WorkerOptions
from ropewalk.engine.runtime import SystemRuntime
from ropewalk.engine.worker import STOPPING, Worker
from ropewalk.ports.exchange import Durability


def serve(options: WorkerOptions, leash: Leash | None, *, as_json: bool) -> ExitCode:
    """On a leash it belongs to a fleet, which speaks for it."""
    if leash is not None:
        leash.heed(SystemRuntime())
    app = load_app(options.app_path)
    if leash is not None and app.durability is Durability.D0:
        raise click.ClickException(
            f"{app.url} lives inside one process: --processes needs a store that several share, like sqlite:///jobs.db"
        )
    worker = app.worker(
        queues=options.queues or None,
        types=options.types or None,
        tenants=options.tenants or None,
        concurrency=options.concurrency,
        grace=options.grace,
        lease=options.lease,
        scheduler=options.scheduler,
    )
    start_logging(options.log_level, name=None if leash is None else leash.name)

    def announce(worker: Worker) -> None:
        """Once it has started: each start of a worker has an id of its own."""
        types = options.types or app.registry.names()
        announcement = Announcement.of(worker.id, app, types, options.concurrency)
        if leash is None:
            announcement.show(as_json=as_json)
        else:
            leash.announce(announcement)

    async def run() -> None:
        hurried_by = STOPPING if leash is None else HURRIED_BY
        async with app, log_events(app):
            await DrainWatch(options.grace).run(worker, on_started=announce, hurried_by=hurried_by)
            if leash is not None:  # where nobody supervises, a signal is the way out of a store that does not close
                hear_no_more()

    asyncio.run(run())
    return ExitCode.OK
