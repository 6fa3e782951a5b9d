"""Runs the supervisor of several worker processes, which passes stop signals on to all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ropewalk.cli.worker.announcement import show_all
from ropewalk.cli.worker.log import start_logging
from ropewalk.cli.worker.options import WorkerOptions
from ropewalk.fleet.fleet import Fleet, Member
from ropewalk.fleet.parent_link import Announcement, environment_of
from ropewalk.fleet.shutdown import KILLED_AFTER_SECONDS, ignore_stop_signals
from ropewalk.fleet.worker_process import start_process
from ropewalk.runtime.system import SystemRuntime
from ropewalk.worker.parts import DEFAULT_GRACE_SECONDS
from ropewalk.worker.worker import STOPPING


async def supervise(options: WorkerOptions, processes: int, *, as_json: bool) -> int:
    """Run a fleet of `ropewalk worker` processes until a stop signal, and return the exit code."""
    start_logging(options.log_level, form=options.log_format, name="fleet")
    arguments = options.arguments()

    async def start(name: str) -> Member:
        return await start_process(
            lambda fd: ["-m", "ropewalk", "worker", *arguments], lambda fd: environment_of(fd, name)
        )

    def show(announcements: Sequence[Announcement]) -> None:
        show_all(announcements, as_json=as_json)

    fleet = Fleet(
        processes,
        start,
        SystemRuntime(),
        grace_seconds=DEFAULT_GRACE_SECONDS if options.grace is None else options.grace,
        overtime_seconds=KILLED_AFTER_SECONDS,
        on_complete=show,
    )
    loop = asyncio.get_running_loop()
    for each in STOPPING:
        loop.add_signal_handler(each, fleet.stop)
    try:
        return await fleet.run()
    finally:
        ignore_stop_signals()
