"""The options of `ropewalk schedules create` and `edit`, and their translation into arguments of the client."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, get_args

import click
from msgspec import Struct

from ropewalk.cli.json_arguments import JsonArguments, json_arguments
from ropewalk.cli.stats import seconds_of
from ropewalk.cli.target import Target
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.definitions.registry import Registry
from ropewalk.definitions.schedule import ScheduleOptions
from ropewalk.domain.schedules.schedule import Missed

T = TypeVar("T")


def optional_seconds_of(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Parse a duration that may be missing (a callback of click)."""
    return None if value is None else seconds_of(ctx, param, value)


class ParsedOptions(Struct, frozen=True):
    """The options of one command line, checked against each other."""

    timing: ScheduleOptions
    """The options cron, timezone, every, next, run and missed, as far as they were given."""
    type: str | None
    arguments: JsonArguments | None
    using: EnqueueOptions

    def options_of(self, registry: Registry) -> ScheduleOptions:
        """Return the options of the schedule, with a job if --type names its type."""
        options = self.timing
        if self.type is None:
            return options
        arguments: Any = {} if self.arguments is None else self.arguments.of(registry, self.type)
        job = registry.get(self.type).from_arguments(arguments)
        return {**options, "job": job.using(**self.using) if self.using else job}


def parsed_options(target: Target, given: Mapping[str, Any], *, creating: bool) -> ParsedOptions:
    """Parse the options; raise UsageError if some are missing or contradict each other."""
    timing = {
        name: given[name] for name in ("cron", "timezone", "every", "next", "run", "missed") if given[name] is not None
    }
    using = {
        name: given[name]
        for name in ("queue", "priority", "delay", "max_attempts", "timeout", "ttl", "idempotency_key")
        if given[name] is not None
    }
    if given["tags"]:
        using["tags"] = dict(tag_of(each) for each in given["tags"])
    parsed = ParsedOptions(
        timing=cast("ScheduleOptions", timing),
        type=given["type"],
        arguments=json_arguments(given["arguments"]),
        using=cast("EnqueueOptions", using),
    )
    if target.app_path is None:
        for option, value in (("--type", parsed.type), ("--arguments", parsed.arguments)):
            if value is not None:
                raise click.UsageError(f"{option} needs --app, which knows the job type and checks its arguments")
    if creating:
        for names, question in ((("cron", "every", "next"), "when it fires"), (("type", "run"), "what it enqueues")):
            if all(given[name] is None for name in names):
                options = " or ".join(f"--{name}" for name in names)
                raise click.UsageError(f"no option says {question}: give {options}")
    if creating and parsed.type is None and (parsed.arguments is not None or parsed.using):
        raise click.UsageError("there are options of a job, but no job type: give --type")
    return parsed


def schedule_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options of a schedule and its job; the command gets them as one mapping named `given`."""

    @click.option("--cron", metavar="TEXT", help="Fire by this cron expression, like '30 3 * * *'.")
    @click.option(
        "--timezone",
        metavar="NAME",
        help="Time zone of --cron, like Europe/Oslo. Default: UTC; an edit keeps the time zone.",
    )
    @click.option(
        "--every",
        metavar="DURATION",
        callback=optional_seconds_of,
        help="Fire at this interval, like 90s, 30min or 1h.",
    )
    @click.option("--next", metavar="NAME", help="Fire at the times that this function of the app returns.")
    @click.option("--type", metavar="NAME", help="Enqueue a job of this type. Needs --app.")
    @click.option("--arguments", metavar="JSON", help='Arguments of the job, like \'{"kind": "sales"}\'. Needs --app.')
    @click.option("--run", metavar="NAME", help="Enqueue the job that this function of the app returns.")
    @click.option(
        "--missed",
        type=click.Choice(get_args(Missed)),
        metavar="WORD",
        help="What to do about fires that were due while no worker ran: skip (the default), once or all.",
    )
    @click.option("--queue", metavar="NAME", help="Queue of the job. Default: that of its type.")
    @click.option("--priority", type=int, metavar="N", help="Priority of the job, -1000 to 1000; higher runs first.")
    @click.option(
        "--delay",
        metavar="DURATION",
        callback=optional_seconds_of,
        help="Time that the job waits after the schedule has fired, like 90s.",
    )
    @click.option("--max-attempts", type=int, metavar="N", help="Largest number of attempts of the job, 1 to 100.")
    @click.option("--timeout", metavar="DURATION", callback=optional_seconds_of, help="Time limit of an attempt.")
    @click.option("--ttl", metavar="DURATION", callback=optional_seconds_of, help="Time limit of the job's whole life.")
    @click.option(
        "--tag",
        "tags",
        multiple=True,
        metavar="NAME=VALUE",
        help="Tag of the job. Repeatable. An edit replaces all tags.",
    )
    @click.option("--idempotency-key", metavar="TEXT", help="Enqueue nothing while a job with this key is unfinished.")
    @click.option(
        "--dry-run", is_flag=True, help="Store nothing; show the schedule as it would be, with its next fires."
    )
    @functools.wraps(command)
    def with_options(target: Target, *, name: str, as_json: bool, dry_run: bool, **given: Any) -> T:
        return command(target, name=name, given=given, dry_run=dry_run, as_json=as_json)

    return with_options


def tag_of(given: str) -> tuple[str, str]:
    """Split one value of `--tag` into name and value."""
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--tag {given!r} is not NAME=VALUE, like customer=42")
    return name, value
