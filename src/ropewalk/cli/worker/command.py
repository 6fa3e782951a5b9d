"""`ropewalk worker`: run an app's jobs until somebody says stop, in this process or in several."""

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
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="Serve this queue only. Repeatable.")
@click.option("--type", "types", multiple=True, metavar="NAME", help="Serve this job type only. Repeatable.")
@click.option("--tenant", "tenants", multiple=True, metavar="NAME", help="Serve this tenant only. Repeatable.")
@click.option("--concurrency", type=int, default=None, show_default="10", help="How many jobs run at a time.")
@click.option(
    "--processes",
    type=click.IntRange(1, PROCESSES_MAX),
    default=1,
    show_default=True,
    metavar="N",
    help="Run so many workers in processes of their own, each with --concurrency. One that dies is replaced.",
)
@click.option(
    "--grace",
    type=float,
    default=None,
    show_default="30",
    metavar="SECONDS",
    help="How long running jobs may take to finish after a stop signal.",
)
@click.option(
    "--lease",
    type=float,
    default=None,
    metavar="SECONDS",
    help="How long the worker may stay silent before others take its jobs over (the app's default, else 30).",
)
@click.option("--no-scheduler", is_flag=True, help="Leave schedules to other workers.")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    help="The least important lines that are logged.",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How lines are logged: text for people, or JSON.",
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
    """Run the jobs of an app until told to stop.

    MODULE:NAME, or $ROPEWALK_APP, is an app, or a worker that code has made of one: `mail = app.worker(...)`. Such a
    worker has its settings from there, and takes no option that would set one of them again. One that was made with
    `processes=4` runs in four processes, unless --processes says another number.

    The worker says on stdout who it is, and then logs a line to stderr for each thing that happens: a failure that is
    tried again as a warning, one that is not as an error, both with their traceback. SIGTERM or Ctrl-C
    drain it: nothing new is started, what runs may finish within --grace seconds, the rest is given back to others
    without losing an attempt. A second one does not wait. While the store is away the worker waits for it and goes on
    by itself. It exits 0 after a drain; 1 if a handler did not end and had to be left behind, or if claims kept failing
    for a minute because something is broken here; 3 if the store could not be used at the start, or refused to be used
    for a minute.

    With --processes all this holds for all of them together, and the exit code is the worst of theirs.
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
        from ropewalk.cli.worker.supervising import supervise  # one worker needs none of it

        return asyncio.run(supervise(options, processes, as_json=as_json))
    from ropewalk.cli.worker.serving import serve  # a supervisor neither loads the app nor runs anything of it

    return serve(options, ParentLink.taken(), as_json=as_json)
