"""`ropewalk why`: the one named cause a job is not running."""

from __future__ import annotations

import click

from ropewalk.cli import render
from ropewalk.cli.command import Command, json_option
from ropewalk.cli.target import Target, target_options


@click.command(
    cls=Command,
    examples=[
        "ropewalk why 0198f2c4-... --app shop:app",
        "ropewalk why 0198f2c4-... --url sqlite:///jobs.db --json",
    ],
)
@click.argument("job_id", metavar="ID")
@target_options
@json_option
def why(target: Target, *, job_id: str, as_json: bool) -> None:
    """Say why a job is not running, and what to do about it."""
    answer = target.run(lambda client: client.why(job_id))
    if as_json:
        render.echo_json(answer)
    else:
        render.echo(f"{render.state(answer.state)} ({answer.cause}): {render.safe(answer.explanation)}")
