"""`ropewalk quotas`: lists, sets and removes the quotas of tenants."""

from __future__ import annotations

import click

from ropewalk.cli import render
from ropewalk.cli.command import Command, Group, json_option
from ropewalk.cli.errors import complain
from ropewalk.cli.limits import rate_from, rate_text
from ropewalk.cli.target import Target, target_options
from ropewalk.client.store_client import StoreClient
from ropewalk.domain.limits.fleet_limit import ANY
from ropewalk.domain.limits.quota import Quota, QuotaUse
from ropewalk.domain.limits.rate import ALGORITHMS, Algorithm
from ropewalk.fleet.exit_codes import ExitCode


@click.group(
    cls=Group,
    examples=[
        "ropewalk quotas list --app shop:app",
        "ropewalk quotas set --tenant acme --pending 10000 --running 50 --app shop:app",
    ],
)
def quotas() -> None:
    """List, set and remove the quotas of tenants."""


@quotas.command("list", cls=Command, examples=["ropewalk quotas list --app shop:app", "ropewalk quotas list --json"])
@target_options
@json_option
def list_(target: Target, *, as_json: bool) -> None:
    """List the quotas of all tenants, and how much of them is used."""
    found = target.run(_all)
    if as_json:
        render.echo_json({"quotas": [_document(quota, use) for quota, use in found]})
    elif found:
        header = ("TENANT", "WAITING", "RUNNING", "SUBMISSIONS", "PAYLOAD BYTES")
        render.echo_table(header, [_row(quota, use) for quota, use in found])
    else:
        render.echo("there are no quotas")


@quotas.command(
    "set",
    cls=Command,
    examples=[
        "ropewalk quotas set --tenant acme --pending 10000 --running 50 --app shop:app",
        "ropewalk quotas set --tenant acme --submissions 100/1 --algorithm token --app shop:app",
        "ropewalk quotas set --tenant '*' --pending 1000    # the default for all tenants",
    ],
)
@target_options
@click.option("--pending", type=int, metavar="N", help="Largest number of jobs that wait.")
@click.option("--running", type=int, metavar="N", help="Largest number of jobs that run at once.")
@click.option(
    "--submissions",
    metavar="N/SECONDS",
    help="Largest number of jobs that are submitted within so many seconds, like 100/60.",
)
@click.option(
    "--algorithm",
    type=click.Choice(ALGORITHMS),
    default="sliding",
    show_default=True,
    help="How jobs are counted for --submissions.",
)
@click.option("--payload-bytes", type=int, metavar="N", help="Largest size of the input of one job, in bytes.")
@json_option
def set_(
    target: Target,
    *,
    pending: int | None,
    running: int | None,
    submissions: str | None,
    algorithm: Algorithm,
    payload_bytes: int | None,
    as_json: bool,
) -> None:
    """Set or replace the quota of a tenant.

    The quota applies from the next submission and claim on; existing jobs stay. Parts that you leave out are not
    bounded. The quota of the tenant '*' is the default for every tenant, for the parts that its own quota leaves out.
    """
    rate_limit = None if submissions is None else rate_from(submissions, algorithm, "--submissions")
    quota = Quota(
        tenant=target.tenant, pending=pending, running=running, submissions=rate_limit, payload_bytes=payload_bytes
    )
    target.run(
        lambda client: client.set_quota(
            pending=pending, running=running, submissions=rate_limit, payload_bytes=payload_bytes
        )
    )
    if as_json:
        render.echo_json({"set": True})
    else:
        render.echo(f"{_named(target)}  {_told(quota)}")


@quotas.command("remove", cls=Command, examples=["ropewalk quotas remove --tenant acme --app shop:app"])
@target_options
@json_option
def remove(target: Target, *, as_json: bool) -> ExitCode:
    """Remove a tenant's own quota."""
    gone = target.run(lambda client: client.remove_quota())
    if as_json:
        render.echo_json({"removed": gone})
    elif gone:
        render.echo(f"{_named(target)}  no longer has a quota of its own")
    else:
        complain(f"{_named(target)} had no quota of its own")
    return ExitCode.OK if gone else ExitCode.FAILED


async def _all(client: StoreClient) -> list[tuple[Quota, QuotaUse | None]]:
    """Return each quota with its use; the quota for all tenants has no use of its own."""
    return [
        (quota, None if quota.tenant == ANY else await client.tenant(quota.tenant).quota())
        for quota in await client.quotas()
    ]


def _named(target: Target) -> str:
    return render.safe(f"tenant {target.tenant}")


def _told(quota: Quota) -> str:
    parts = [
        None if quota.pending is None else f"at most {quota.pending} waiting",
        None if quota.running is None else f"at most {quota.running} at once",
        None if quota.submissions is None else f"at most {rate_text(quota.submissions)} submitted",
        None if quota.payload_bytes is None else f"at most {quota.payload_bytes} bytes an input",
    ]
    return ", ".join(part for part in parts if part is not None)


def _row(quota: Quota, use: QuotaUse | None) -> tuple[str, ...]:
    rate = quota.submissions
    return (
        render.safe(quota.tenant),
        _part(quota.pending, None if use is None else use.pending),
        _part(quota.running, None if use is None else use.running),
        "" if rate is None else _part(rate_text(rate), None if use is None else use.submissions),
        "" if quota.payload_bytes is None else str(quota.payload_bytes),
    )


def _part(most: int | str | None, now: int | None) -> str:
    if most is None:
        return ""
    return f"at most {most}" if now is None else f"{now} of {most}"


def _document(quota: Quota, use: QuotaUse | None) -> dict[str, object]:
    return {
        "tenant": quota.tenant,
        "pending": quota.pending,
        "running": quota.running,
        "submissions": quota.submissions,
        "payload_bytes": quota.payload_bytes,
        "use": None
        if use is None
        else {"pending": use.pending, "running": use.running, "submissions": use.submissions},
    }
