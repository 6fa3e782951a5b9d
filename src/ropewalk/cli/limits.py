"""`ropewalk limits`: lists, sets and removes fleet-wide limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import click

from ropewalk.app import App
from ropewalk.cli import render
from ropewalk.cli.command import Command, Group, json_option
from ropewalk.cli.errors import complain
from ropewalk.cli.target import Target, target_options
from ropewalk.client.store_client import StoreClient
from ropewalk.domain.limits.fleet_limit import EVERY_TENANT, FlowLimit
from ropewalk.domain.limits.rate import ALGORITHMS, Algorithm, Rate
from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.ports.store.limits import LimitUse
from ropewalk.worker.worker import limits_in

T = TypeVar("T")

every_tenant_option = click.option(
    "--every-tenant", is_flag=True, help="Use limits on all tenants together instead of limits on one tenant."
)


@click.group(
    cls=Group,
    examples=[
        "ropewalk limits list --app shop:app",
        "ropewalk limits set --key stripe --concurrency 5 --rate 100/1 --app shop:app",
    ],
)
def limits() -> None:
    """List, set and remove fleet-wide limits while workers run."""


@limits.command(
    "list", cls=Command, examples=["ropewalk limits list --app shop:app", "ropewalk limits list --json --tenant acme"]
)
@target_options
@every_tenant_option
@json_option
def list_(target: Target, *, every_tenant: bool, as_json: bool) -> None:
    """List limits, the jobs that run under them, and their origin.

    The list has the limits on the tenant, and those on all tenants together, such as the limits that code declares;
    with --every-tenant it has only the latter. With --app it also has limits that the code declares but no worker has
    stored yet.
    """
    app = target.app()

    async def look(client: StoreClient) -> list[LimitUse]:
        of_all = await client.limits(every_tenant=True)
        return of_all if every_tenant else [*await client.limits(), *of_all]

    found = asyncio.run(target.within(app, look))
    stored = {use.limit.id for use in found}
    found += [LimitUse(limit=limit, in_use=0) for limit in limits_in(app.registry) if limit.id not in stored]
    found.sort(key=lambda use: (use.limit.kind, use.limit.name, use.limit.tenant))
    listed = [Listed(use, stored=use.limit.id in stored, types=_declared_by(app, use.limit)) for use in found]
    if as_json:
        render.echo_json({"limits": [_document(each) for each in listed]})
    elif listed:
        render.echo_table(("KIND", "NAME", "RUNNING", "AT ONCE", "RATE", "OF", "FROM"), map(_row, listed))
    else:
        render.echo("there are no limits")


class Listed(NamedTuple):
    """A limit, whether the store has it, and the job types of the app that declare it."""

    use: LimitUse
    stored: bool
    types: Sequence[str]

    @property
    def origin(self) -> str:
        """Where the limit comes from, in words."""
        if not self.use.limit.declared:
            return "set at run time"
        code = f"code of {', '.join(self.types)}" if self.types else "code"
        return code if self.stored else f"{code}, when a worker starts"


def _declared_by(app: App, limit: FlowLimit) -> list[str]:
    types = [each for each in app.registry if each.options.limit is not None]
    declared = [(each.name, each.options.limit.of(each.name)) for each in types if each.options.limit is not None]
    return sorted(name for name, its in declared if its is not None and its.id == limit.id)


def limited(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options --queue, --type, --key and --every-tenant."""
    command = every_tenant_option(command)
    command = click.option(
        "--key",
        metavar="KEY",
        help="The limit of jobs with limit=KEY; a KEY that ends in * limits each key with that beginning separately.",
    )(command)
    command = click.option("--type", metavar="NAME", help="The limit of this job type.")(command)
    return click.option("--queue", metavar="NAME", help="The limit of this queue.")(command)


@limits.command(
    "set",
    cls=Command,
    examples=[
        "ropewalk limits set --queue mail --concurrency 20 --app shop:app",
        "ropewalk limits set --key stripe --rate 100/1 --algorithm token --app shop:app",
        "ropewalk limits set --key 'customer:*' --concurrency 1    # for each customer",
    ],
)
@target_options
@limited
@click.option(
    "--concurrency", type=int, metavar="N", help="Largest number of jobs that run at once in the whole fleet."
)
@click.option(
    "--rate", metavar="N/SECONDS", help="Largest number of jobs that start within so many seconds, like 100/60."
)
@click.option(
    "--algorithm",
    type=click.Choice(ALGORITHMS),
    default="sliding",
    show_default=True,
    help="How starts are counted for --rate.",
)
@json_option
def set_(
    target: Target,
    *,
    queue: str | None,
    type: str | None,  # noqa: A002 # named like the option
    key: str | None,
    concurrency: int | None,
    rate: str | None,
    algorithm: Algorithm,
    every_tenant: bool,
    as_json: bool,
) -> None:
    """Set or replace the limit of a queue, a type or a key.

    Name one of --queue, --type and --key, and give --concurrency, --rate or both. The limit applies from the next claim
    on; jobs that run already are not affected.
    """
    rate_limit = None if rate is None else rate_from(rate, algorithm, "--rate")
    target.warn_of_unknown_types(type)
    target.run(
        lambda client: client.set_limit(
            queue=queue, type=type, key=key, concurrency=concurrency, rate=rate_limit, every_tenant=every_tenant
        )
    )
    if as_json:
        render.echo_json({"set": True})
    else:
        render.echo(f"{_named(queue, type, key)}  {_told(concurrency, rate_limit)}")


@limits.command("remove", cls=Command, examples=["ropewalk limits remove --key stripe --app shop:app"])
@target_options
@limited
@json_option
def remove(
    target: Target,
    *,
    queue: str | None,
    type: str | None,  # noqa: A002 # named like the option
    key: str | None,
    every_tenant: bool,
    as_json: bool,
) -> ExitCode:
    """Remove the limit of a queue, a type or a key."""
    target.warn_of_unknown_types(type)
    gone = target.run(lambda client: client.remove_limit(queue=queue, type=type, key=key, every_tenant=every_tenant))
    if as_json:
        render.echo_json({"removed": gone})
    elif gone:
        render.echo(f"{_named(queue, type, key)}  no longer has a limit")
    else:
        complain(f"{_named(queue, type, key)} had no limit")
    return ExitCode.OK if gone else ExitCode.FAILED


def rate_from(given: str, algorithm: Algorithm, option: str) -> Rate:
    """Return the rate that the value N/SECONDS of an option means; raise UsageError for anything else."""
    count, _, seconds = given.partition("/")
    try:
        number, per = int(count), float(seconds)
    except ValueError:
        raise click.UsageError(f"{option} {given!r} is not N/SECONDS, like 100/60") from None
    return Rate(number, per=per, algorithm=algorithm)


def _named(queue: str | None, of_type: str | None, key: str | None) -> str:
    named = {"queue": queue, "type": of_type, "key": key}
    return render.safe(" ".join(f"{kind} {name}" for kind, name in named.items() if name is not None))


def _told(concurrency: int | None, rate: Rate | None) -> str:
    at_once = [] if concurrency is None else [f"at most {concurrency} at once"]
    return ", ".join([*at_once, *([] if rate is None else [f"at most {rate_text(rate)}"])])


def rate_text(rate: Rate) -> str:
    """Return a rate in words."""
    return f"{rate.count} in {rate.per:g} s ({rate.algorithm})"


def _row(listed: Listed) -> tuple[str, ...]:
    use, limit = listed.use, listed.use.limit
    at_once = "" if limit.concurrency is None else str(limit.concurrency)
    rate_limit = "" if limit.rate is None else rate_text(limit.rate)
    running = f"{use.in_use} in {len(use.keys)} keys" if use.keys else str(use.in_use)
    whose = "every tenant" if limit.tenant == EVERY_TENANT else f"tenant {limit.tenant}"
    told = (limit.kind, limit.name, running, at_once, rate_limit, whose, listed.origin)
    return tuple(map(render.safe, told))


def _document(listed: Listed) -> dict[str, object]:
    use, limit = listed.use, listed.use.limit
    return {
        "kind": limit.kind,
        "name": limit.name,
        "tenant": None if limit.tenant == EVERY_TENANT else limit.tenant,
        "declared": limit.declared,
        "stored": listed.stored,
        "declared_by": list(listed.types),
        "concurrency": limit.concurrency,
        "rate": limit.rate,
        "in_use": use.in_use,
        "keys": use.keys,
    }
