"""The command `ropewalk demo`."""

from __future__ import annotations

import click

from ropewalk.cli.command import Command, json_option
from ropewalk.fleet.exit_codes import ExitCode


@click.command(
    cls=Command,
    examples=["ropewalk demo", "ropewalk demo --json    # only one JSON document at the end"],
)
@json_option
def demo(*, as_json: bool) -> ExitCode:
    """Run a demonstration: a worker is killed, no job is lost.

    Three real worker processes run a small workload on one SQLite file. One of them is killed in the middle of a job
    and one is frozen, and the others take over their jobs. The demo takes about 15 seconds, removes its files, and
    exits with 0 only if everything that it promises really happened.
    """
    # Imported here, because `ropewalk --help` needs neither rich nor the jobs of the demo.
    from ropewalk.cli.demo.run import run_demo

    return run_demo(as_json=as_json)
