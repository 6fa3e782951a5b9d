"""`ropewalk why`: the cause for which a job is not running."""

from __future__ import annotations

import click

from ropewalk.cli import ids, render
from ropewalk.cli.command import Command, json_option
from ropewalk.cli.target import Target, target_options
from ropewalk.client.client import Client
from ropewalk.domain.why import Why


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
    """Explain why a job is not running, and what to do about it."""

    async def ask(client: Client) -> Why:
        return await client.why(await ids.job_id(client, job_id))

    answer = target.run(ask)
    if as_json:
        render.echo_json(answer)
    else:
        render.echo(f"{render.state(answer.state)} ({answer.cause}): {render.safe(answer.explanation)}")
