"""Runs a worker in this process: loads or makes it, and runs it until a stop signal."""

from __future__ import annotations

import asyncio
import gc
import warnings

import click

from ropewalk.app import App
from ropewalk.cli.errors import complain
from ropewalk.cli.loading import load_app_or_worker
from ropewalk.cli.worker.announcement import show
from ropewalk.cli.worker.log import log_events, logger, start_logging
from ropewalk.cli.worker.options import WorkerOptions
from ropewalk.cli.worker.supervisor import supervise
from ropewalk.errors import InvalidInput, UnsharedStore
from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.fleet.parent_link import HURRIED_BY, Announcement, ParentLink
from ropewalk.fleet.shutdown import DrainWatch, ignore_stop_signals
from ropewalk.fleet.worker_processes import WorkerProcesses
from ropewalk.ports.store.core import Durability
from ropewalk.runtime.system import SystemRuntime
from ropewalk.worker.worker import STOPPING, Worker


def serve(options: WorkerOptions, link: ParentLink | None, *, as_json: bool) -> ExitCode | int:
    """Run the worker that the options name and return the exit code.

    With a `link` the worker is one process of a fleet, whose supervisor prints the announcement. If code made the
    worker for several processes, this process becomes their supervisor, unless it is itself one of them.
    """
    if link is not None:
        link.drain_when_cut(SystemRuntime())
    worker = _worker(options)
    if isinstance(worker, WorkerProcesses):
        if link is None:
            return asyncio.run(supervise(options, worker.processes, as_json=as_json))
        worker = worker.worker
    app = worker.client
    assert isinstance(app, App)  # only apps make workers
    if link is not None and app.durability is Durability.D0:
        raise click.ClickException(
            f"{app.url} lives inside one process: --processes needs a store that several share, like sqlite:///jobs.db"
        )
    start_logging(
        options.log_level,
        form=options.log_format,
        name=None if link is None else link.name,
        secret_keys=app.settings.logs.secret_keys,
    )

    if app.durability is Durability.D0:
        _warn_unshared(app)

    def announce(worker: Worker) -> None:
        announcement = Announcement.of(worker, store=app.url, durability=app.durability)
        if link is None:
            show(announcement, as_json=as_json)
        else:
            link.announce(announcement)

    async def run() -> None:
        hurried_by = STOPPING if link is None else HURRIED_BY
        async with app, log_events(app):
            await DrainWatch(worker.grace_seconds, complain).run(worker, on_started=announce, hurried_by=hurried_by)
            if link is not None:  # alone, a signal may still end a store that does not close
                ignore_stop_signals()

    # Imported objects stay for good; looking through them takes the garbage collector 3 ms in a small app.
    gc.collect()
    gc.freeze()
    asyncio.run(run())
    return ExitCode.OK


def _warn_unshared(app: App) -> None:
    """Log the warning that no other process shares this store, unless the filters of warnings suppress it.

    The app does not warn again.
    """
    told = (
        f"{app.url} lives in this process alone: no other process can queue jobs for this worker, or see them, and "
        "they end with it. Give the app a store that others can open, such as sqlite:///jobs.db"
    )
    with warnings.catch_warnings(record=True) as heard:
        try:
            warnings.warn(told, UnsharedStore, stacklevel=1)
        except UnsharedStore as error:
            raise InvalidInput(str(error), field="url") from error
    for each in heard:
        logger.warning("%s", each.message)
    warnings.simplefilter("ignore", UnsharedStore)


def _worker(options: WorkerOptions) -> Worker | WorkerProcesses:
    """Make a worker of the named app with these options, or return the named worker, which has its own settings."""
    named = load_app_or_worker(options.path)
    if isinstance(named, App):
        return named.worker(**options.settings())
    if given := options.given():
        raise click.ClickException(
            f"{options.path} is a worker with settings of its own: leave {', '.join(given)} out, or name the app"
        )
    return named
