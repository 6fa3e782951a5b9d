"""A server for the application: where it listens, how it starts, and how it ends while requests are under way."""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

import uvicorn
from msgspec import Struct

from ropewalk.errors import InvalidInput, RopewalkError
from ropewalk.http.serve import Serve
from ropewalk.http.serving.protocol import BoundedProtocol

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8765
GRACE_SECONDS: Final = 30.0
BACKLOG: Final = 2048
KEEP_ALIVE_SECONDS: Final = 75
"""Longer than the 60 seconds after which common load balancers close an idle connection, so that they close it."""


class Listening(Struct, frozen=True, kw_only=True):
    """Where a server listens."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    """0 takes a free one."""
    unix_socket: str | None = None
    """The path of a Unix socket, instead of host and port."""
    certificate: str | None = None
    """The file with the certificate chain, for HTTPS."""
    key: str | None = None
    """The file with the private key."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks whose X-Forwarded-For and X-Forwarded-Proto are believed."""


class Server(uvicorn.Server):
    """uvicorn's server, which ends streams and waits by itself before it stops."""

    def __init__(self, application: Serve, listening: Listening, *, grace_seconds: float = GRACE_SECONDS) -> None:
        self._application = application
        self._listening = listening
        self.on_started: Callable[[str], object] = lambda _: None
        """Is called with the URL when the server accepts connections."""
        super().__init__(_config(application, listening, grace_seconds))

    @property
    def url(self) -> str:
        """Where the server can be reached. Only after it has started."""
        if self._listening.unix_socket is not None:
            return f"unix:{self._listening.unix_socket}"
        scheme = "http" if self._listening.certificate is None else "https"
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        try:
            await super().startup()
        except SystemExit as error:  # uvicorn's answer to an address that it cannot have
            place = self._listening.unix_socket or f"{self._listening.host}:{self._listening.port}"
            raise RopewalkError(f"the server cannot listen on {place}: another program may use it") from error
        if self.started:
            self.on_started(self.url)

    def stop(self) -> None:
        """Accepts nothing more, ends streams and waits, and lets requests under way finish. Again: does not wait."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True
        self._application.drain()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Stops on SIGTERM and SIGINT. uvicorn's own way would raise the signal again when the server has ended."""
        loop = asyncio.get_running_loop()
        heard = (signal.SIGTERM, signal.SIGINT)
        for each in heard:
            loop.add_signal_handler(each, self.stop)
        try:
            yield
        finally:
            for each in heard:
                loop.remove_signal_handler(each)


def _config(application: Serve, listening: Listening, grace_seconds: float) -> uvicorn.Config:
    config = uvicorn.Config(
        application,
        host=listening.host,
        port=listening.port,
        uds=listening.unix_socket,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
        http=BoundedProtocol,
        ws="none",
        log_level="warning",  # each start and stop is told once, by the command
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=bool(listening.trusted_proxies),
        forwarded_allow_ips=list(listening.trusted_proxies),
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(grace_seconds)),
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        files = f"certificate={listening.certificate!r}, key={listening.key!r}"
        raise InvalidInput(f"{files}: {error}", field="certificate") from error
    if config.ssl is not None:
        config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
    return config
