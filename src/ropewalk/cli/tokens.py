"""`ropewalk token`: make, list and revoke the tokens of the HTTP service, at the store itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Final

import click
import msgspec

from ropewalk.app import App
from ropewalk.cli.command import Command, Group, json_option
from ropewalk.cli.render import safe
from ropewalk.cli.target import Target, target_options
from ropewalk.domain.bounds import check_name
from ropewalk.domain.time import SECOND, to_datetime, to_span
from ropewalk.errors import NotFound
from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.http.identity.identity import EVERY_TENANT, Payloads, Role
from ropewalk.http.identity.tokens import Token, Tokens

LISTED_MAX: Final = 1000


@click.group(
    cls=Group,
    examples=(
        "ropewalk token create admin --role admin --role operate --role read --every-tenant --app shop:app",
        "ropewalk token list --app shop:app",
        "ropewalk token revoke 3f2a9c01d4e5b677 --app shop:app",
    ),
)
def token() -> None:
    """Manage the tokens of the HTTP service.

    Who can run this can read and write the store, and may therefore make any token.
    """


@token.command(
    cls=Command,
    examples=(
        "ropewalk token create billing --role submit --tenant acme --app shop:app",
        "ropewalk token create ci --role read --expires 86400 --app shop:app",
    ),
)
@click.argument("name")
@click.option(
    "--role",
    "roles",
    multiple=True,
    required=True,
    type=click.Choice([each.value for each in Role]),
    help="What it may do. Repeatable.",
)
@click.option("--every-tenant", is_flag=True, help="For all tenants, instead of --tenant.")
@click.option(
    "--payloads",
    type=click.Choice([each.value for each in Payloads]),
    default=Payloads.REDACTED.value,
    show_default=True,
    help="How much of arguments, results and messages it sees.",
)
@click.option("--type", "types", multiple=True, metavar="NAME", help="Only for this job type. Repeatable.")
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="Only for this queue. Repeatable.")
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Requests per second, per server."
)
@click.option("--expires", type=click.FloatRange(min=1), metavar="SECONDS", help="Seconds until it expires.")
@json_option
@target_options
def create(
    target: Target,
    name: str,
    *,
    roles: Sequence[str],
    every_tenant: bool,
    payloads: str,
    types: Sequence[str],
    queues: Sequence[str],
    rate: float | None,
    expires: float | None,
    as_json: bool,
) -> ExitCode:
    """Make a token and print it. It is shown only now."""

    async def make(app: App) -> tuple[Token, str]:
        now = await app.operator(target.tenant).now()
        ends = None if expires is None else to_span(expires, "expires") + round(now.timestamp() * SECOND)
        wanted = Token(
            id="",
            secret_hash=b"",
            name=check_name(name, "name"),
            tenant=EVERY_TENANT if every_tenant else target.tenant,
            roles=tuple(sorted(Role(each) for each in set(roles))),
            payloads=Payloads(payloads),
            types=tuple(types) or None,
            queues=tuple(queues) or None,
            requests_per_second=rate,
            expires_at=ends,
        )
        return await _tokens(app).create(wanted)

    made, text = target.run_app(make)
    if as_json:
        click.echo(msgspec.json.encode({"token_id": made.id, "token": text}).decode())
    else:
        click.echo(text)
        click.echo(f"token {made.id} for {_whose(made)} may {', '.join(made.roles)}; it is shown only now", err=True)
    return ExitCode.OK


@token.command(cls=Command, name="list", examples=("ropewalk token list --app shop:app",))
@json_option
@target_options
def list_tokens(target: Target, *, as_json: bool) -> ExitCode:
    """List the tokens of all tenants, newest first."""

    async def read(app: App) -> list[Token]:
        found, _ = await _tokens(app).page(None, None, LISTED_MAX)
        return found

    found = target.run_app(read)
    if as_json:
        click.echo(msgspec.json.encode([_described(each) for each in found]).decode())
        return ExitCode.OK
    for each in found:
        used = "never used" if each.last_used_at is None else f"used {_moment(each.last_used_at)}"
        ends = "" if each.expires_at is None else f", expires {_moment(each.expires_at)}"
        click.echo(f"{each.id}  {safe(each.name):20}  {_whose(each):16}  {','.join(each.roles)}  {used}{ends}")
    return ExitCode.OK


@token.command(cls=Command, examples=("ropewalk token revoke 3f2a9c01d4e5b677 --app shop:app",))
@click.argument("token_id")
@json_option
@target_options
def revoke(target: Target, token_id: str, *, as_json: bool) -> ExitCode:
    """Revoke a token. All servers refuse it within a second."""

    async def remove(app: App) -> None:
        if not await _tokens(app).revoke(token_id):
            raise NotFound(f"no token {token_id!r}: see `ropewalk token list`")

    target.run_app(remove)
    click.echo(msgspec.json.encode({"revoked": token_id}).decode() if as_json else f"revoked {token_id}")
    return ExitCode.OK


def _tokens(app: App) -> Tokens:
    return Tokens(app._app_state)  # the command line is a part of this package, beside the client


def _whose(made: Token) -> str:
    return "every tenant" if made.tenant == EVERY_TENANT else f"tenant {safe(made.tenant)}"


def _moment(instant: int) -> str:
    return to_datetime(instant).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _described(made: Token) -> dict[str, object]:
    fields = {name: getattr(made, name) for name in made.__struct_fields__ if name != "secret_hash"}
    return {
        name: to_datetime(value) if name.endswith("_at") and value is not None else value
        for name, value in fields.items()
    }
