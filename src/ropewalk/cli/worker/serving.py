"""A worker in this process: loaded or made, run, and drained when somebody says stop."""

from __future__ import annotations

import asyncio
import gc
import warnings

import click

from ropewalk.app import App
from ropewalk.cli.errors import complain
from ropewalk.cli.loading import load_app_or_worker
from ropewalk.cli.worker.announcing import show
from ropewalk.cli.worker.log import log_events, logger, start_logging
from ropewalk.cli.worker.options import WorkerOptions
from ropewalk.cli.worker.supervising import supervise
from ropewalk.errors import InvalidInput, UnsharedStore
from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.fleet.parent_link import HURRIED_BY, Announcement, ParentLink
from ropewalk.fleet.shutdown import DrainWatch, ignore_stop_signals
from ropewalk.fleet.worker_processes import WorkerProcesses
from ropewalk.ports.store.core import Durability
from ropewalk.runtime.system import SystemRuntime
from ropewalk.worker.worker import STOPPING, Worker


def serve(options: WorkerOptions, leash: ParentLink | None, *, as_json: bool) -> ExitCode | int:
    """On a leash it belongs to a fleet, which speaks for it. What code has made for several processes becomes one."""
    if leash is not None:
        leash.heed(SystemRuntime())
    worker = _worker(options)
    if isinstance(worker, WorkerProcesses):
        if leash is None:
            return asyncio.run(supervise(options, worker.processes, as_json=as_json))
        worker = worker.worker
    app = worker.client
    assert isinstance(app, App)  # nothing else makes workers
    if leash is not None and app.durability is Durability.D0:
        raise click.ClickException(
            f"{app.url} lives inside one process: --processes needs a store that several share, like sqlite:///jobs.db"
        )
    start_logging(
        options.log_level,
        form=options.log_format,
        name=None if leash is None else leash.name,
        secret_keys=app.settings.logs.secret_keys,
    )

    if app.durability is Durability.D0:
        _say_unshared(app)

    def announce(worker: Worker) -> None:
        announcement = Announcement.of(worker, store=app.url, durability=app.durability)
        if leash is None:
            show(announcement, as_json=as_json)
        else:
            leash.announce(announcement)

    async def run() -> None:
        hurried_by = STOPPING if leash is None else HURRIED_BY
        async with app, log_events(app):
            await DrainWatch(worker.grace_seconds, complain).run(worker, on_started=announce, hurried_by=hurried_by)
            if leash is not None:  # where nobody supervises, a signal is the way out of a store that does not close
                ignore_stop_signals()

    # What was imported stays for good: to look through it takes 3 ms of a small app, in which no handler runs.
    gc.collect()
    gc.freeze()
    asyncio.run(run())
    return ExitCode.OK


def _say_unshared(app: App) -> None:
    """In the log, like everything else, as far as the filters of warnings let it through; not said again by the app."""
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
    """The app's, made as the options say; or the one that was named, which says everything itself."""
    named = load_app_or_worker(options.path)
    if isinstance(named, App):
        return named.worker(**options.settings())
    if given := options.given():
        raise click.ClickException(
            f"{options.path} is a worker with settings of its own: leave {', '.join(given)} out, or name the app"
        )
    return named
