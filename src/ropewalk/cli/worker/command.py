"""The command `ropewalk worker`, which runs jobs in this process, or in several, until a stop signal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import click

from ropewalk.cli.command import Command, json_option
from ropewalk.cli.worker.log import FORMATS, LEVELS
from ropewalk.cli.worker.options import WorkerOptions
from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.fleet.parent_link import ParentLink

EXAMPLES: Final = (
    "ropewalk worker shop:app                       # `app = App(...)` in shop.py",
    "ropewalk worker shop:app --queue mail --queue images --concurrency 50",
    "ropewalk worker shop:app --type encode_video --concurrency 2 --grace 300",
    "ropewalk worker shop:app --processes 4         # one per core, for handlers that compute",
    "ropewalk worker shop:mail                      # `mail = app.worker(...)` in shop.py",
)
PROCESSES_MAX: Final = 256


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("path", metavar="MODULE:NAME", envvar="ROPEWALK_APP")
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="Serve only this queue. Repeatable.")
@click.option("--type", "types", multiple=True, metavar="NAME", help="Serve only this job type. Repeatable.")
@click.option("--tenant", "tenants", multiple=True, metavar="NAME", help="Serve only this tenant. Repeatable.")
@click.option(
    "--concurrency",
    type=int,
    default=None,
    metavar="N",
    help="Number of jobs that run at a time, in each process.  [default: 10]",
)
@click.option(
    "--processes",
    type=click.IntRange(1, PROCESSES_MAX),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of worker processes. With more than one, a supervisor replaces those that die.",
)
@click.option(
    "--grace",
    type=float,
    default=None,
    metavar="SECONDS",
    help="Seconds that running jobs have to finish after a stop signal.  [default: 30]",
)
@click.option(
    "--lease",
    type=float,
    default=None,
    metavar="SECONDS",
    help="Seconds without a sign of life after which other workers take over its jobs.  "
    "[default: that of the app, otherwise 30]",
)
@click.option("--no-scheduler", is_flag=True, help="Do not fire schedules; leave them to other workers.")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    help="Log lines of this level and above.",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Log as text for people, or as one JSON object per line.",
)
@json_option
def worker(
    path: str,
    *,
    queues: Sequence[str],
    types: Sequence[str],
    tenants: Sequence[str],
    concurrency: int | None,
    processes: int,
    grace: float | None,
    lease: float | None,
    no_scheduler: bool,
    log_level: str,
    log_format: str,
    as_json: bool,
) -> ExitCode | int:
    """Run the jobs of an app until a stop signal.

    MODULE:NAME (or $ROPEWALK_APP) is an app, or a worker that your code has configured: `mail = app.worker(...)`. Such
    a worker takes its settings from the code, and options that would override them are refused. If it was made with
    `processes=4`, it runs in four processes unless --processes sets another number.

    The worker prints one line about itself on stdout, and logs one line per event to stderr. A failure that is retried
    is a warning, and a final failure is an error; both include the traceback.

    SIGTERM or Ctrl-C drains the worker: it starts no more jobs, running jobs have --grace seconds to finish, and all
    others are given back without losing an attempt. A second signal ends the grace period at once.

    While the store is away, the worker waits for it and then goes on by itself. The exit code is 0 after a drain. It is
    1 if a handler did not end and had to be left behind, or if claims failed for a minute because of an error in the
    worker. It is 3 if the store could not be used at the start, or refused to be used for a minute.

    With --processes, this applies to all processes together, and the exit code is the worst of theirs.
    """
    options = WorkerOptions(
        path=path,
        queues=queues,
        types=types,
        tenants=tenants,
        concurrency=concurrency,
        grace=grace,
        lease=lease,
        scheduler=not no_scheduler,
        log_level=log_level,
        log_format=log_format,
    )
    if processes > 1:
        from ropewalk.cli.worker.supervisor import supervise  # imported only for several processes

        return asyncio.run(supervise(options, processes, as_json=as_json))
    from ropewalk.cli.worker.one_process import serve  # imported only here: a supervisor does not load the app

    return serve(options, ParentLink.from_environment(), as_json=as_json)
