"""`ropewalk demo`: the command line of it."""

from __future__ import annotations

import click

from ropewalk.cli.command import Command, json_option
from ropewalk.fleet.exit_codes import ExitCode


@click.command(
    cls=Command,
    examples=["ropewalk demo", "ropewalk demo --json    # silent, then what happened as one document"],
)
@json_option
def demo(*, as_json: bool) -> ExitCode:
    """See it work: a worker is killed, nothing is lost.

    Three real worker processes on one SQLite file run a small workload; one of them is killed in the middle of a job
    and one is frozen, and their work goes on elsewhere. Takes about 15 seconds, leaves nothing behind, and exits 0 only
    if everything it promises really happened.
    """
    # Imported here: `ropewalk --help` needs neither rich nor the demo's jobs.
    from ropewalk.cli.demo.performance import perform

    return perform(as_json=as_json)
