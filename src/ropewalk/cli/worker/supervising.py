"""The supervisor's process: a fleet of workers, and signals for all of them. It does not import the app."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ropewalk.cli.worker.fleet import Fleet, Member
from ropewalk.cli.worker.fleet_process import start_worker
from ropewalk.cli.worker.log import start_logging
from ropewalk.cli.worker.options import WorkerOptions
from ropewalk.cli.worker.parent_link import Announcement
from ropewalk.cli.worker.shutdown import OVERTIME_SECONDS, ignore_stop_signals
from ropewalk.runtime.system import SystemRuntime
from ropewalk.worker.parts import DEFAULT_GRACE_SECONDS
from ropewalk.worker.worker import STOPPING

SLACK_SECONDS: Final = 1.0
"""a worker leaves by itself when its time is up; one that even then does not is killed"""


async def supervise(options: WorkerOptions, processes: int, *, as_json: bool) -> int:
    start_logging(options.log_level, form=options.log_format, name="fleet")
    arguments = options.arguments()

    async def start(name: str) -> Member:
        return await start_worker(name, arguments)

    def show(announcements: Sequence[Announcement]) -> None:
        announcements[0].show_all([each.worker for each in announcements], as_json=as_json)

    fleet = Fleet(
        processes,
        start,
        SystemRuntime(),
        grace_seconds=DEFAULT_GRACE_SECONDS if options.grace is None else options.grace,
        overtime_seconds=OVERTIME_SECONDS + SLACK_SECONDS,
        on_complete=show,
    )
    loop = asyncio.get_running_loop()
    for each in STOPPING:
        loop.add_signal_handler(each, fleet.stop)
    try:
        return await fleet.run()
    finally:
        ignore_stop_signals()
