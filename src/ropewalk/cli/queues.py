"""`ropewalk queues`: lists, pauses and resumes queues."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import click

from ropewalk.cli import render
from ropewalk.cli.command import Command, Group, json_option
from ropewalk.cli.errors import warn
from ropewalk.cli.target import Target, target_options
from ropewalk.client.client import Client
from ropewalk.client.store_client import StoreClient
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import Instant, to_datetime, to_instant, to_seconds
from ropewalk.ports.store.reading import QueueInfo

LIVE: Final = (State.SCHEDULED, State.RUNNING, State.DELAYED, State.RETRYING, State.PENDING)


@click.group(
    cls=Group,
    examples=["ropewalk queues list --app shop:app", "ropewalk queues pause mail --app shop:app"],
)
def queues() -> None:
    """List, pause and resume queues."""


@queues.command(
    "list",
    cls=Command,
    examples=["ropewalk queues list --app shop:app", "ropewalk queues list --url sqlite:///jobs.db --json"],
)
@target_options
@json_option
def list_(target: Target, *, as_json: bool) -> None:
    """List queues, with the number of waiting and running jobs.

    READY jobs could start now; OLDEST is how long the first of them has been ready.
    """
    found, now = target.run(_looked)
    if as_json:
        render.echo_json({"queues": [_document(each, now) for each in found]})
    elif found:
        header = ("NAME", "STATE", "READY", "RUNNING", "DELAYED", "RETRYING", "PENDING", "OLDEST")
        render.echo_table(header, [_row(each, now) for each in found])
    else:
        render.echo("no queue has jobs that wait or run, and none is paused")


@queues.command(cls=Command, examples=["ropewalk queues pause mail reports --app shop:app"])
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@target_options
@json_option
def pause(target: Target, *, names: Sequence[str], as_json: bool) -> None:
    """Start no more jobs of these queues; running jobs finish."""
    _change(target, names, lambda client, name: client.pause(name), "paused", as_json=as_json)


@queues.command(cls=Command, examples=["ropewalk queues resume mail reports --app shop:app"])
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@target_options
@json_option
def resume(target: Target, *, names: Sequence[str], as_json: bool) -> None:
    """Let jobs of these queues start again."""
    _change(target, names, lambda client, name: client.resume(name), "resumed", as_json=as_json)


async def _looked(client: Client) -> tuple[list[QueueInfo], Instant]:
    return await client.queues(), to_instant(await client.now(), "now")


def _change(
    target: Target,
    names: Sequence[str],
    verb: Callable[[Client, str], Coroutine[Any, Any, None]],
    done: str,
    *,
    as_json: bool,
) -> None:
    async def change(client: StoreClient) -> None:
        known = await _known(client, target)
        for name in names:
            if name not in known:
                warn(f"no job waits or runs in queue {name!r}, and no worker or job type names it: check the spelling")
            await verb(client, name)
            if not as_json:
                render.echo(f"{render.safe(name)}  {done}")

    target.run(change)
    if as_json:
        render.echo_json({done: list(names)})


async def _known(client: StoreClient, target: Target) -> set[str]:
    """Return the queues that a job, a worker or a job type names."""
    stored = {each.name for each in await client.queues()}
    served = {name for card in await client.workers() for name in card.queues or ()}
    types = () if target.app_path is None else target.app().registry
    return stored | served | {each.options.queue for each in types if each.options.queue is not None}


def _row(queue: QueueInfo, now: Instant) -> list[str]:
    state = click.style("paused", fg="yellow") if queue.paused else click.style("active", fg="green")
    oldest = "" if queue.oldest_ready_at is None else render.span(_age_seconds(queue.oldest_ready_at, now))
    return [render.safe(queue.name), state, *(str(queue.counts.get(each, 0)) for each in LIVE), oldest]


def _document(queue: QueueInfo, now: Instant) -> dict[str, object]:
    oldest = queue.oldest_ready_at
    return {
        "name": queue.name,
        "paused": queue.paused,
        "counts": {each.value: queue.counts.get(each, 0) for each in LIVE},
        "oldest_ready_at": None if oldest is None else to_datetime(oldest),
        "oldest_ready_seconds": None if oldest is None else _age_seconds(oldest, now),
    }


def _age_seconds(at: Instant, now: Instant) -> float:
    return max(0.0, to_seconds(now - at))
