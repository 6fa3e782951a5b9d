"""`ropewalk schedules`: list them, show one and its fires to come, pause, resume, trigger, delete."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import click

from ropewalk.cli import render
from ropewalk.cli.command import Command, Group, json_option
from ropewalk.cli.job_view import presentable as presentable_job
from ropewalk.cli.schedule_view import echo_fires, echo_schedule, echo_schedules, presentable
from ropewalk.cli.target import Target, target_options
from ropewalk.client.client import Client
from ropewalk.client.operations.schedules import UPCOMING_MAX
from ropewalk.client.views.schedules import ScheduleInfo


@click.group(
    cls=Group,
    examples=[
        "ropewalk schedules list --app shop:app",
        "ropewalk schedules next nightly --app shop:app",
    ],
)
def schedules() -> None:
    """Look at schedules, pause and trigger them.

    Those that code declares are stored when a worker of the app starts.
    """


@schedules.command(
    "list",
    cls=Command,
    examples=["ropewalk schedules list --app shop:app", "ropewalk schedules list --url sqlite:///jobs.db --json"],
)
@target_options
@json_option
def list_(target: Target, *, as_json: bool) -> None:
    """List schedules by name, with their next fire."""
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
    """Show one schedule: when, what, its last fire and the next."""
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
@click.option("--count", type=click.IntRange(1, UPCOMING_MAX), default=10, show_default=True, help="At most so many.")
@json_option
def next_(target: Target, *, name: str, count: int, as_json: bool) -> None:
    """Show when a schedule fires next, on its own clock.

    Across changes of that clock, too. Where its times are told by a function, give --app.
    """
    info = target.run(lambda client: client.get_schedule(name, upcoming=count))
    if as_json:
        render.echo_json({"name": info.name, "upcoming": info.upcoming})
    elif info.upcoming:
        echo_fires(info)
    else:
        render.echo(f"{render.safe(name)} has ended: it fires no more")


@schedules.command(cls=Command, examples=["ropewalk schedules pause nightly --app shop:app"])
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@target_options
@json_option
def pause(target: Target, *, names: Sequence[str], as_json: bool) -> None:
    """Let schedules pass their times in silence."""
    _change(target, names, lambda client, name: client.pause_schedule(name), "paused", as_json=as_json)


@schedules.command(cls=Command, examples=["ropewalk schedules resume nightly --app shop:app"])
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@target_options
@json_option
def resume(target: Target, *, names: Sequence[str], as_json: bool) -> None:
    """Let schedules fire again, from their next time on."""
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
    """Enqueue a schedule's job once, now, beside its times."""
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
    """Forget schedules; their jobs stay.

    One that code declares is stored again when the next worker starts: pause that instead.
    """

    async def delete_all(client: Client) -> None:
        for name in names:
            await client.delete_schedule(name)
            if not as_json:
                render.echo(f"{render.safe(name)}  deleted")

    target.run(delete_all)
    if as_json:
        render.echo_json({"deleted": list(names)})


def _change(
    target: Target,
    names: Sequence[str],
    verb: Callable[[Client, str], Coroutine[Any, Any, ScheduleInfo]],
    done: str,
    *,
    as_json: bool,
) -> None:
    async def change(client: Client) -> list[ScheduleInfo]:
        changed: list[ScheduleInfo] = []
        for name in names:
            changed.append(await verb(client, name))
            if not as_json:
                render.echo(f"{render.safe(name)}  {done}")
        return changed

    changed = target.run(change)
    if as_json:
        render.echo_json({"schedules": [presentable(info) for info in changed]})
