"""`ropewalk schedules`: list them, show one and its fires to come, create, edit, pause, resume, trigger, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import click

from ropewalk.cli import render
from ropewalk.cli.command import Command, Group, json_option
from ropewalk.cli.errors import complain
from ropewalk.cli.job_view import presentable as presentable_job
from ropewalk.cli.schedule_options import parsed_options, schedule_options
from ropewalk.cli.schedule_view import echo_fires, echo_schedule, echo_schedules, presentable
from ropewalk.cli.target import Target, target_options
from ropewalk.client.client import Client
from ropewalk.client.operations.schedules import UPCOMING_MAX
from ropewalk.client.views.schedules import ScheduleInfo
from ropewalk.errors import NotFound

T = TypeVar("T")


@click.group(
    cls=Group,
    examples=[
        "ropewalk schedules list --app shop:app",
        "ropewalk schedules next nightly --app shop:app",
        "ropewalk schedules create nightly --cron '30 3 * * *' --type report --app shop:app",
        "ropewalk schedules edit nightly --cron '0 4 * * *' --url sqlite:///jobs.db --dry-run",
    ],
)
def schedules() -> None:
    """List, create, edit, pause and trigger schedules.

    Schedules that code declares are stored when a worker of the app starts.
    """


@schedules.command(
    "list",
    cls=Command,
    examples=["ropewalk schedules list --app shop:app", "ropewalk schedules list --url sqlite:///jobs.db --json"],
)
@target_options
@json_option
def list_(target: Target, *, as_json: bool) -> None:
    """List schedules by name, with their next fire time."""
    found = target.run(lambda client: client.schedules())
    if as_json:
        render.echo_json({"schedules": [presentable(info) for info in found]})
    else:
        echo_schedules(found)


@schedules.command(
    cls=Command,
    examples=[
        "ropewalk schedules show nightly --app shop:app",
        "ropewalk schedules show nightly --url sqlite:///jobs.db --json",
    ],
)
@click.argument("name")
@target_options
@json_option
def show(target: Target, *, name: str, as_json: bool) -> None:
    """Show the times, the job and the fires of one schedule."""
    info = target.run(lambda client: client.get_schedule(name))
    if as_json:
        render.echo_json(presentable(info))
    else:
        echo_schedule(info)


@schedules.command(
    "next",
    cls=Command,
    examples=[
        "ropewalk schedules next nightly --app shop:app",
        "ropewalk schedules next nightly --count 30 --app shop:app --json",
    ],
)
@click.argument("name")
@target_options
@click.option(
    "--count",
    type=click.IntRange(1, UPCOMING_MAX),
    default=10,
    show_default=True,
    metavar="N",
    help="Largest number of fires to show.",
)
@json_option
def next_(target: Target, *, name: str, count: int, as_json: bool) -> None:
    """Show the next fire times of a schedule.

    The times are in the time zone of the schedule, across changes such as summer time, and in UTC. If the schedule
    fires at the times of a function, give --app.
    """
    info = target.run(lambda client: client.get_schedule(name, upcoming=count))
    if as_json:
        render.echo_json({"name": info.name, "upcoming": info.upcoming})
    elif info.upcoming:
        echo_fires(info)
    else:
        render.echo(f"{render.safe(name)} has ended and will not fire again")


@schedules.command(
    cls=Command,
    examples=[
        "ropewalk schedules create nightly --cron '30 3 * * *' --type report --app shop:app",
        """ropewalk schedules create tax --cron @daily --type report --arguments '{"kind": "tax"}'""",
        "ropewalk schedules create pulse --every 10min --type ping --missed once --app shop:app",
        "ropewalk schedules create nightly --cron '30 3 * * *' --type report --app shop:app --dry-run",
    ],
)
@click.argument("name")
@target_options
@schedule_options
@json_option
def create(target: Target, *, name: str, given: Mapping[str, Any], dry_run: bool, as_json: bool) -> None:
    """Create a schedule, which any worker then fires.

    Give one of --cron, --every and --next for the times, and one of --type and --run for the job. No schedule may have
    the name yet.
    """
    parsed, app = parsed_options(target, given, creating=True), target.app()
    options = parsed.options_of(app.registry)
    info = asyncio.run(target.within(app, lambda client: client.create_schedule(name, dry_run=dry_run, **options)))
    _tell_stored(info, "created", dry_run=dry_run, as_json=as_json)


@schedules.command(
    cls=Command,
    examples=[
        "ropewalk schedules edit nightly --cron '0 4 * * *' --app shop:app",
        "ropewalk schedules edit nightly --queue slow --priority -5 --url sqlite:///jobs.db",
        """ropewalk schedules edit nightly --arguments '{"kind": "load"}' --app shop:app --dry-run""",
    ],
)
@click.argument("name")
@target_options
@schedule_options
@json_option
def edit(target: Target, *, name: str, given: Mapping[str, Any], dry_run: bool, as_json: bool) -> None:
    """Change parts of a schedule, and keep the rest.

    --type replaces the whole job; without it, --arguments and the options of the job change only what you give, and the
    other arguments stay as they are. Concurrent edits do not undo one another. Fires that are already due by the old
    times are enqueued together with the edit. After an edit, code that declares the schedule no longer changes it.
    """
    parsed, app = parsed_options(target, given, creating=False), target.app()
    options = parsed.options_of(app.registry)

    async def change(client: Client) -> ScheduleInfo:
        if parsed.type is not None:
            return await client.edit_schedule(name, dry_run=dry_run, **options)
        arguments: Any = None
        if parsed.arguments is not None:
            job_type = (await client.get_schedule(name)).job_type
            # If a function makes the jobs, there is no type to decode by; the client refuses any arguments.
            arguments = {} if job_type is None else parsed.arguments.part_of(app.registry, job_type)
        return await client.edit_schedule(name, arguments=arguments, using=parsed.using, dry_run=dry_run, **options)

    info = asyncio.run(target.within(app, change))
    _tell_stored(info, "edited", dry_run=dry_run, as_json=as_json)


@schedules.command(cls=Command, examples=["ropewalk schedules pause nightly --app shop:app"])
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@target_options
@json_option
def pause(target: Target, *, names: Sequence[str], as_json: bool) -> None:
    """Stop schedules from firing until they are resumed."""
    _change(target, names, lambda client, name: client.pause_schedule(name), "paused", as_json=as_json)


@schedules.command(cls=Command, examples=["ropewalk schedules resume nightly --app shop:app"])
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@target_options
@json_option
def resume(target: Target, *, names: Sequence[str], as_json: bool) -> None:
    """Let paused schedules fire again, from their next time on."""
    _change(target, names, lambda client, name: client.resume_schedule(name), "resumed", as_json=as_json)


@schedules.command(
    cls=Command,
    examples=[
        "ropewalk schedules trigger nightly --app shop:app",
        "ropewalk schedules trigger nightly --url sqlite:///jobs.db --json",
    ],
)
@click.argument("name")
@target_options
@json_option
def trigger(target: Target, *, name: str, as_json: bool) -> None:
    """Enqueue the job of a schedule once, now."""
    job = target.run(lambda client: client.trigger_schedule(name))
    if as_json:
        render.echo_json(presentable_job(job))
    else:
        render.echo(f"{job.id}  queued ({render.safe(job.type)})")


@schedules.command(cls=Command, examples=["ropewalk schedules delete nightly --app shop:app"])
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@target_options
@json_option
def delete(target: Target, *, names: Sequence[str], as_json: bool) -> None:
    """Delete schedules; their jobs stay.

    A schedule that code declares is stored again when the next worker starts: pause it instead.
    """

    async def delete_one(client: Client, name: str) -> str:
        await client.delete_schedule(name)
        return name

    _change_each(target, names, delete_one, "deleted", lambda gone: {"deleted": gone}, as_json=as_json)


def _tell_stored(info: ScheduleInfo, done: str, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        render.echo_json({**asdict(presentable(info)), "dry_run": dry_run})
        return
    name = render.safe(info.name)
    render.echo(f"{name}  would be {done}; nothing is stored:" if dry_run else f"{name}  {done}:")
    echo_schedule(info)


def _change(
    target: Target,
    names: Sequence[str],
    verb: Callable[[Client, str], Coroutine[Any, Any, ScheduleInfo]],
    done: str,
    *,
    as_json: bool,
) -> None:
    def document(changed: list[ScheduleInfo]) -> dict[str, object]:
        return {"schedules": [presentable(info) for info in changed]}

    _change_each(target, names, verb, done, document, as_json=as_json)


def _change_each(
    target: Target,
    names: Sequence[str],
    verb: Callable[[Client, str], Coroutine[Any, Any, T]],
    done: str,
    document: Callable[[list[T]], Mapping[str, object]],
    *,
    as_json: bool,
) -> None:
    """Change all schedules that exist, and then raise NotFound if one of the names was not found."""
    changed: list[T] = []
    missing: list[NotFound] = []

    async def change(client: Client) -> None:
        for name in names:
            try:
                changed.append(await verb(client, name))
            except NotFound as error:
                missing.append(error)
                continue
            if not as_json:
                render.echo(f"{render.safe(name)}  {done}")

    target.run(change)
    if as_json and changed:
        render.echo_json(document(changed))
    for error in missing[:-1]:
        complain(str(error))
    if missing:
        raise missing[-1]
