"""`ropewalk limits`: how many jobs run at once, and how many start in a span of time, fleet-wide."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from ropewalk.cli import render
from ropewalk.cli.command import Command, Group, json_option
from ropewalk.cli.errors import ExitCode, complain
from ropewalk.cli.target import Target, target_options
from ropewalk.domain.limits.rate import ALGORITHMS, Algorithm, Rate
from ropewalk.ports.store.messages import LimitUse

T = TypeVar("T")

every_tenant_option = click.option("--every-tenant", is_flag=True, help="Of all tenants together, not of one.")


@click.group(
    cls=Group,
    examples=[
        "ropewalk limits list --app shop:app",
        "ropewalk limits set --key stripe --concurrency 5 --rate 100/1 --app shop:app",
    ],
)
def limits() -> None:
    """Look at limits, and change them while workers run."""


@limits.command(
    "list", cls=Command, examples=["ropewalk limits list --app shop:app", "ropewalk limits list --json --tenant acme"]
)
@target_options
@every_tenant_option
@json_option
def list_(target: Target, *, every_tenant: bool, as_json: bool) -> None:
    """List limits, and what runs under them now.

    Those that code declares hold for all tenants together: see --every-tenant.
    """
    found = target.run(lambda client: client.limits(every_tenant=every_tenant))
    if as_json:
        render.echo_json({"limits": [_document(each) for each in found]})
    elif found:
        render.echo_table(("KIND", "NAME", "RUNNING", "AT ONCE", "RATE"), [_row(each) for each in found])
    else:
        render.echo("there are no limits")


def limited(command: Callable[..., T]) -> Callable[..., T]:
    """Adds --queue, --type, --key and --every-tenant."""
    command = every_tenant_option(command)
    command = click.option("--key", help="A key jobs name with limit=; with * at its end each key that begins so.")(
        command
    )
    command = click.option("--type", metavar="NAME", help="All jobs of this type.")(command)
    return click.option("--queue", metavar="NAME", help="All jobs of this queue.")(command)


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
@click.option("--concurrency", type=int, metavar="N", help="So many run at once.")
@click.option("--rate", metavar="N/SECONDS", help="So many start in so many seconds, like 100/60.")
@click.option("--algorithm", type=click.Choice(ALGORITHMS), default="sliding", show_default=True, help="Of the rate.")
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

    It holds from the next claim on; what runs goes on.
    """
    pace = None if rate is None else rate_in(rate, algorithm, "--rate")
    target.run(
        lambda client: client.set_limit(
            queue=queue, type=type, key=key, concurrency=concurrency, rate=pace, every_tenant=every_tenant
        )
    )
    if as_json:
        render.echo_json({"set": True})
    else:
        render.echo(f"{_named(queue, type, key)}  {_told(concurrency, pace)}")


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
    """Take a limit away."""
    gone = target.run(lambda client: client.remove_limit(queue=queue, type=type, key=key, every_tenant=every_tenant))
    if as_json:
        render.echo_json({"removed": gone})
    elif gone:
        render.echo(f"{_named(queue, type, key)}  has no limit any more")
    else:
        complain(f"{_named(queue, type, key)} had no limit")
    return ExitCode.OK if gone else ExitCode.FAILED


def rate_in(given: str, algorithm: Algorithm, option: str) -> Rate:
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
    return ", ".join([*at_once, *([] if rate is None else [f"at most {pace_of(rate)}"])])


def pace_of(rate: Rate) -> str:
    return f"{rate.count} in {rate.per:g} s ({rate.algorithm})"


def _row(use: LimitUse) -> tuple[str, ...]:
    limit = use.limit
    at_once = "" if limit.concurrency is None else str(limit.concurrency)
    pace = "" if limit.rate is None else pace_of(limit.rate)
    running = f"{use.in_use} in {len(use.keys)} keys" if use.keys else str(use.in_use)
    return limit.kind, render.safe(limit.name), running, at_once, pace


def _document(use: LimitUse) -> dict[str, object]:
    limit = use.limit
    return {
        "kind": limit.kind,
        "name": limit.name,
        "declared": limit.declared,
        "concurrency": limit.concurrency,
        "rate": limit.rate,
        "in_use": use.in_use,
        "keys": use.keys,
    }
