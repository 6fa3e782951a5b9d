"""`ropewalk stats`: counts, rates and durations of a time span, and the number of jobs in each state."""

from __future__ import annotations

import re
import shutil
from typing import Final, get_args

import click

from ropewalk.cli import render
from ropewalk.cli.command import Command, json_option
from ropewalk.cli.stats_view import document, echo_stats
from ropewalk.cli.target import Target, target_options
from ropewalk.domain.statistics.aggregation import By

_UNITS: Final = {"s": 1, "min": 60, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN: Final = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_UNITS)})?")
_WIDE: Final = 100
"""Width of the terminal from which on the timeline has twice as many slices."""


def seconds_of(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Parse a duration like `90s`, `30min`, `1h`, `7d` or `2w` (a callback of click); a plain number means seconds."""
    found = _SPAN.fullmatch(value.strip())
    if found is None or float(found[1]) == 0:
        raise click.BadParameter(f"{value!r} is not a duration like 90s, 30min, 1h or 7d", ctx, param)
    return float(found[1]) * _UNITS[found[2] or "s"]


@click.command(
    cls=Command,
    examples=[
        "ropewalk stats --app shop:app                      # the last hour, by type",
        "ropewalk stats --last 24h --by queue --app shop:app",
        "ropewalk stats --last 7d --type send_email --url sqlite:///jobs.db",
        "ropewalk stats --json | jq .finished_per_second",
    ],
)
@target_options
@click.option(
    "--last",
    metavar="DURATION",
    callback=seconds_of,
    default="1h",
    show_default=True,
    help="Length of the time span until now, like 90s, 30min, 24h or 7d.",
)
@click.option(
    "--by",
    type=click.Choice(get_args(By)),
    default="type",
    show_default=True,
    help="Show one row for each type, queue, or pair of both.",
)
@click.option("--queue", metavar="NAME", help="Count only jobs of this queue.")
@click.option("--type", metavar="NAME", help="Count only jobs of this type.")
@json_option
def stats(
    target: Target,
    *,
    last: float,
    by: By,
    queue: str | None,
    type: str | None,  # noqa: A002 # named like the option
    as_json: bool,
) -> None:
    """Show counts, rates and latencies, and jobs by state.

    WAIT is the time from when an attempt could have started until it started, RUN the time from its start to its end,
    and TOTAL the time from the submission of a job to its end. A time span of up to six hours is rounded to minutes,
    a longer one to hours.
    """
    slices = 60 if shutil.get_terminal_size().columns >= _WIDE else 30
    target.warn_of_unknown_types(type)
    told = target.run(lambda client: client.stats(last=last, by=by, queue=queue, type=type, slices=slices))
    if as_json:
        render.echo_json(document(told))
    else:
        echo_stats(told, by)
