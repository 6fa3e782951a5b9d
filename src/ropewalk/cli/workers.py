"""`ropewalk workers`: lists workers and asks them to drain."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ropewalk.cli import render
from ropewalk.cli.command import Command, Group, json_option
from ropewalk.cli.ids import worker_ids
from ropewalk.cli.target import Target, target_options
from ropewalk.cli.worker_view import document, header, row
from ropewalk.client.store_client import StoreClient
from ropewalk.domain.time import Instant, to_instant
from ropewalk.ports.store.leases import WorkerCard


@click.group(
    cls=Group,
    examples=["ropewalk workers list --app shop:app", "ropewalk workers drain 4f1c... --app shop:app"],
)
def workers() -> None:
    """List and drain workers, wherever they run."""


@workers.command(
    "list",
    cls=Command,
    examples=["ropewalk workers list --app shop:app", "ropewalk workers list --url sqlite:///jobs.db --json"],
)
@target_options
@json_option
def list_(target: Target, *, as_json: bool) -> None:
    """List the workers of a store, whichever tenants they serve.

    HOLDS counts the jobs that a worker has claimed: those that run, and a few that will start in a moment. A worker
    without a sign of life for a whole lease counts as dead: others take over its jobs, and it leaves the list after a
    day.
    """
    found, now = target.run(_looked)
    if as_json:
        render.echo_json({"workers": [document(card, now) for card in found]})
    elif found:
        render.echo_table(header(), [row(card, now) for card in found])
    else:
        render.echo("no workers: start one with `ropewalk worker module:app`")


@workers.command(
    cls=Command,
    examples=[
        "ropewalk workers drain 4f1c... --app shop:app",
        "ropewalk workers drain 4f1c... 90ab... --url sqlite:///jobs.db --json",
    ],
)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@target_options
@json_option
def drain(target: Target, *, ids: Sequence[str], as_json: bool) -> None:
    """Ask workers to finish their jobs and stop, wherever they run.

    This has the same effect as SIGTERM: the worker starts no more jobs, running jobs have the worker's --grace to
    finish, and all others go back to the other workers. The request arrives at once through a wake-up, or otherwise
    within a third of the worker's lease (10 s by default).
    """

    async def tell(client: StoreClient) -> list[str]:
        meant = await worker_ids(client, ids)
        for each in meant:
            await client.drain_worker(each)
            if not as_json:
                render.echo(f"{each}  asked to drain")
        return meant

    told = target.run(tell)
    if as_json:
        render.echo_json({"draining": told})


async def _looked(client: StoreClient) -> tuple[list[WorkerCard], Instant]:
    """Return the workers and the time of the store's clock, which decides whether a worker is alive."""
    return await client.workers(), to_instant(await client.now(), "now")
