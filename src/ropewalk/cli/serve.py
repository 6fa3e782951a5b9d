"""`ropewalk serve`: the HTTP service of an app or of a store, with worker processes beside it if asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import Final

import click
import msgspec

from ropewalk.app import App
from ropewalk.cli.command import Command, json_option
from ropewalk.cli.target import Target
from ropewalk.cli.worker.log import FORMATS, LEVELS, start_logging
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.fleet.exit_codes import ExitCode
from ropewalk.ports.store.core import Durability

EXAMPLES: Final = (
    "ropewalk serve shop:app                        # `app = App(...)` in shop.py",
    "ropewalk serve shop:app --worker --processes 4 # with workers beside it",
    "ropewalk serve --url sqlite:///jobs.db         # without the code: job types are unknown",
    "ropewalk serve shop:app --bind 0.0.0.0:443 --host jobs.example.com --certificate c --key k",
)
INSTALL: Final = 'pip install "ropewalk[server]"'


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("path", metavar="[MODULE:APP]", required=False, envvar="ROPEWALK_APP")
@click.option(
    "--url", metavar="URL", envvar="ROPEWALK_URL", help="URL of the store, instead of an app. [$ROPEWALK_URL]"
)
@click.option("--bind", default="127.0.0.1:8765", show_default=True, metavar="HOST:PORT", help="Address to listen on.")
@click.option("--unix-socket", metavar="PATH", help="Unix socket to listen on, instead of an address.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="Name that requests may use for it. Repeatable.")
@click.option("--certificate", metavar="FILE", help="Certificate chain, for HTTPS.")
@click.option("--key", metavar="FILE", help="Private key of the certificate.")
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Address or network of a proxy whose X-Forwarded-For and X-Forwarded-Proto are believed. Repeatable.",
)
@click.option("--worker", is_flag=True, help="Also run the jobs of the app.")
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of worker processes, with --worker.",
)
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds that requests under way have to finish after a stop signal.",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="Log this and above.")
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="json",
    show_default=True,
    help="Log as text for people, or as one JSON object per line.",
)
@json_option
def serve(
    path: str | None,
    *,
    url: str | None,
    bind: str,
    unix_socket: str | None,
    hosts: Sequence[str],
    certificate: str | None,
    key: str | None,
    trusted_proxies: Sequence[str],
    worker: bool,
    processes: int,
    grace: float,
    log_level: str,
    log_format: str,
    as_json: bool,
) -> ExitCode:
    """Serve the HTTP API of an app until a stop signal.

    Nothing but health and documentation is open to clients without a token: make the first one with `ropewalk token
    create`. Requests may use an address, localhost, or a name that --host allows.

    SIGTERM or Ctrl-C stops it: it accepts no more connections, ends streams, and requests under way have --grace
    seconds to finish. A second signal does not wait. While the store is away, requests are answered with 503.
    """
    missing = [name for name in ("uvicorn", "httptools") if find_spec(name) is None]
    if missing:
        raise click.ClickException(f"the service needs {' and '.join(missing)}: {INSTALL}")
    from ropewalk.http.serving.server import Listening  # it imports uvicorn

    if path is None and url is None:
        raise click.UsageError("name an app, MODULE:APP, or give --url")
    if (certificate is None) != (key is None):
        raise click.UsageError("--certificate and --key belong together: give both")
    if worker and path is None:
        raise click.UsageError("--worker needs an app: a store alone has no handlers to run")
    app = Target(path, None if path is not None else url, DEFAULT_TENANT).app()
    host, port = _address(bind)
    listening = Listening(
        host=host,
        port=port,
        unix_socket=unix_socket,
        certificate=certificate,
        key=key,
        trusted_proxies=tuple(trusted_proxies),
    )
    start_logging(log_level, form=log_format, name=None, secret_keys=app.settings.logs.secret_keys)
    workers = processes if worker else 0
    asyncio.run(_run(app, listening, hosts, workers=workers, grace_seconds=grace, as_json=as_json))
    return ExitCode.OK


async def _run(
    app: App, listening: object, hosts: Sequence[str], *, workers: int, grace_seconds: float, as_json: bool
) -> None:
    from ropewalk.http.serve import Serve
    from ropewalk.http.serving.server import Listening, Server

    assert isinstance(listening, Listening)
    server = Server(Serve(app, hosts=hosts), listening, grace_seconds=grace_seconds)
    server.on_started = lambda url: _announce(url, app, as_json=as_json)
    async with AsyncExitStack() as beside:
        if workers and app.durability is Durability.D0:
            await beside.enter_async_context(app.worker())
        elif workers:
            await beside.enter_async_context(app.worker(processes=workers))
        await server.serve()


def _announce(url: str, app: App, *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode({"url": url, "store": app.url}).decode())
    else:
        click.echo(f"ropewalk serves {app.url} at {url}  (API: {url}/docs)")


def _address(bind: str) -> tuple[str, int]:
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535:
        raise click.UsageError(f"--bind {bind!r} is not HOST:PORT, like 127.0.0.1:8765")
    return host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port)  # noqa: S104  as asked for
