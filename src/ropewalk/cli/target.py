"""The store that a command works on: `--app module:app`, or `--url URL`, with which job types are unknown."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import click

from ropewalk.app import App
from ropewalk.cli.errors import warn
from ropewalk.cli.loading import load_app
from ropewalk.client.store_client import StoreClient
from ropewalk.definitions.registry import Registry
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.errors import InvalidInput, StoreUnavailable
from ropewalk.ports.store.core import Durability
from ropewalk.ports.store.urls import masked

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """The app or URL that a command line names, and the tenant to work on."""

    app_path: str | None
    url: str | None
    tenant: str

    def run(self, work: Callable[[StoreClient], Coroutine[Any, Any, T]]) -> T:
        """Open the store, do the work with a client of the tenant, and close the store."""
        return asyncio.run(self.within(self.app(), work))

    def run_app(self, work: Callable[[App], Coroutine[Any, Any, T]]) -> T:
        """Open the store, do work that concerns all tenants, close."""

        async def within() -> T:
            app = self.app()
            refuse_memory(app)
            async with app:
                return await work(app)

        return asyncio.run(within())

    def warn_of_unknown_types(self, *names: str | None) -> None:
        """Warn about names that are no job types of the app, because they are probably mistyped."""
        registry = Registry() if self.app_path is None else load_app(self.app_path).registry
        for name in names:
            if len(registry) > 0 and name is not None and name not in registry:
                warn(registry.unknown(name))

    async def within(self, app: App, work: Callable[[StoreClient], Coroutine[Any, Any, T]]) -> T:
        """Open this app, do the work with a client of the tenant, and close the app."""
        refuse_memory(app)
        async with app:
            return await work(app.operator(self.tenant))

    def app(self, *, must_exist: bool = True, allow_weaker_durability: bool = False) -> App:
        """Return the named app, or make one for the URL, whose file must exist if `must_exist` says so."""
        if self.app_path is not None:
            return load_app(self.app_path)
        if self.url is None:
            raise click.UsageError("no store is named: give --app module:app or --url URL, or set $ROPEWALK_APP")
        app = App(self.url, allow_weaker_durability=allow_weaker_durability)
        if must_exist:
            _refuse_missing_file(self.url)
        return app


def target_options(command: Callable[..., T]) -> Callable[..., T]:
    """Add the options --app, --url and --tenant; the command gets them as its first argument, a Target."""

    @click.option(
        "--app",
        "app_path",
        metavar="MODULE:APP",
        envvar="ROPEWALK_APP",
        help="App that names the store and the job types. [$ROPEWALK_APP]",
    )
    @click.option(
        "--url",
        metavar="URL",
        envvar="ROPEWALK_URL",
        help="URL of the store, instead of --app; job types are then unknown. [$ROPEWALK_URL]",
    )
    @click.option("--tenant", metavar="NAME", default=DEFAULT_TENANT, show_default=True, help="Tenant to work on.")
    @click.pass_context
    @functools.wraps(command)
    def with_target(ctx: click.Context, /, app_path: str | None, url: str | None, tenant: str, **options: Any) -> T:
        named = [name for name in ("app_path", "url") if _given(ctx, name)]
        if len(named) == 2:
            raise click.UsageError("an app has a store of its own: give --app or --url, not both")
        if named == ["url"]:
            app_path = None  # an option overrides an environment variable
        return command(Target(app_path, url, tenant), **options)

    return with_target


def refuse_memory(app: App) -> None:
    """Raise InvalidInput if the store of the app lives inside one process."""
    if app.durability is Durability.D0:
        raise InvalidInput(
            f"the store of this app is {app.url}, which only its own process can reach: "
            "use a store that other processes can open, like sqlite:///jobs.db",
            field="url",
        )


def _given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _refuse_missing_file(url: str) -> None:
    """Raise StoreUnavailable for a missing SQLite file, so that a mistyped name does not create an empty store."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and not (path := Path(unquote(parts.path[1:]))).exists():
        raise StoreUnavailable(f"{masked(url)}: there is no file {path.absolute()}; is the path right?")
