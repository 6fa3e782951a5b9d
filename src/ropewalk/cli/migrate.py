"""`ropewalk migrate`: brings the schema of a store up to date, or shows what that would change."""

from __future__ import annotations

import asyncio

import click

from ropewalk.cli import render
from ropewalk.cli.command import Command, json_option
from ropewalk.cli.target import Target, target_options
from ropewalk.errors import InvalidInput
from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.ports.store.migrations import MigrationStore, SchemaState


@click.command(
    cls=Command,
    examples=[
        "ropewalk migrate --app shop:app",
        "ropewalk migrate --url sqlite:///jobs.db --check      # exits with 1 if migrations are missing",
        "ropewalk migrate --url sqlite:///jobs.db --sql        # to apply by hand",
    ],
)
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if migrations are missing.")
@click.option("--sql", is_flag=True, help="Change nothing; print the SQL of the missing migrations.")
@target_options
@json_option
def migrate(target: Target, *, check: bool, sql: bool, as_json: bool) -> ExitCode:
    """Create or update the schema of a store.

    An app does this by itself when it opens its store, unless it was made with migrate=False.
    """
    if check and sql:
        raise click.UsageError("--check and --sql cannot be used together: give one of them")
    app = target.app(must_exist=False)
    if app.migrating is None:
        raise InvalidInput(f"{app.url} has no schema: there is nothing to migrate", field="url")
    if sql:
        click.echo(asyncio.run(app.migrating.ddl()), nl=False)
        return ExitCode.OK
    before = asyncio.run(_state(app.migrating, apply=not check))
    if as_json:
        render.echo_json(before)
    else:
        render.echo(_told(before, checked=check))
    return ExitCode.FAILED if check and before.missing else ExitCode.OK


async def _state(store: MigrationStore, *, apply: bool) -> SchemaState:
    return await store.migrate() if apply else await store.schema()


def _told(before: SchemaState, *, checked: bool) -> str:
    if not before.missing:
        return f"schema {before.applied} is current"
    names = ", ".join(before.missing)
    if checked:
        return f"schema {before.applied} lacks {names}"
    return f"applied {names}: schema {before.newest} is current"
