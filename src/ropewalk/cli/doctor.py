"""`ropewalk doctor`: examines a store and prints one line for each finding, with advice on what to do."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Final

import click

from ropewalk.app import App
from ropewalk.cli import render
from ropewalk.cli.command import Command, json_option
from ropewalk.cli.target import Target, refuse_memory, target_options
from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.ports.store.findings import Finding, Level, worst

COLOURS: Final = {Level.OK: "green", Level.NOTE: "cyan", Level.WARN: "yellow", Level.BAD: "red"}
CODES: Final = {
    Level.OK: ExitCode.OK,
    Level.NOTE: ExitCode.OK,
    Level.WARN: ExitCode.FAILED,
    Level.BAD: ExitCode.STORE,
}


@click.command(
    cls=Command,
    examples=[
        "ropewalk doctor --app shop:app",
        "ropewalk doctor --url sqlite:///jobs.db --deep",
        "ropewalk doctor --url postgresql://db/shop --json    # for monitoring",
    ],
)
@target_options
@click.option(
    "--deep", is_flag=True, help="Also run checks that take long, such as reading every page of a SQLite file."
)
@json_option
def doctor(target: Target, *, deep: bool, as_json: bool) -> ExitCode:
    """Examine a store, its workers and the jobs of all tenants.

    The doctor checks durability, clocks, poolers, wake-ups, stuck leases, types and queues that no worker serves,
    pauses, limits, schedules and tables. It changes nothing. The exit code is 0 if nothing needs to be done, 1 if there
    are warnings (jobs wait or will have to wait), and 3 if the store cannot be used or may lose jobs.
    """
    logging.getLogger("ropewalk").addHandler(
        logging.NullHandler()
    )  # warnings of the store are shown as findings instead
    app = target.app(allow_weaker_durability=True)
    refuse_memory(app)
    findings = asyncio.run(_examined(app, deep=deep))
    level = worst(findings)
    if as_json:
        render.echo_json({"level": level, "findings": findings})
    else:
        _show(findings)
    return CODES[level]


async def _examined(app: App, *, deep: bool) -> list[Finding]:
    try:
        return await app.examine(deep=deep)
    finally:
        await app.close()


def _show(findings: Sequence[Finding]) -> None:
    width = max(len(each.subject) for each in findings)
    for each in findings:
        mark = click.style(f"{each.level.value:<4}", fg=COLOURS[each.level])
        render.echo(f"{mark}  {each.subject:<{width}}  {render.safe(each.found)}")
        if each.advice is not None:
            render.echo(f"{'':4}  {'':{width}}  {click.style('→', dim=True)} {render.safe(each.advice)}")
    counts = Counter(each.level for each in findings)
    render.echo()
    render.echo(", ".join(f"{counts[level]} {level.value}" for level in Level if counts[level]))
