"""PgBouncer in transaction mode in front of a server: a session lasts a transaction, whatever the client believes."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote

import psycopg

from tests.servers.binaries import Binaries
from tests.servers.free_port import HOST, free_port
from tests.servers.home import Home
from tests.servers.postgres import USER, Postgres

CONSOLE: Final = "pgbouncer"
"""the database in which PgBouncer itself answers"""
START_SECONDS_MAX: Final = 10.0
STOP_SECONDS_MAX: Final = 10.0
LOOK_SECONDS: Final = 0.005

CONFIGURATION: Final = """\
[databases]
* = host={host} port={server_port}

[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
admin_users = {user}
pool_mode = transaction
default_pool_size = {sessions_max}
max_client_conn = 200
"""


class PgBouncer:
    """Runs from `start` (or `with`) to `close`."""

    def __init__(self, binaries: Binaries, server: Postgres, *, sessions_max: int = 20) -> None:
        self.port = free_port()
        self._binaries, self._server, self._sessions_max = binaries, server, sessions_max
        self._home = Home("pgbouncer")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = self._binaries.folder / "pgbouncer"
        self._process = self._home.start(program, self._configuration(), env=self._binaries.env)
        until = time.monotonic() + START_SECONDS_MAX
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                raise self._home.failed(f"pgbouncer on port {self.port} did not start")
            time.sleep(LOOK_SECONDS)

    def close(self) -> None:
        """Connections through it are cut."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(STOP_SECONDS_MAX)
            self._process = None
        self._home.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def dsn(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}@{HOST}:{self.port}/{quote(database)}"

    def _configuration(self) -> Path:
        text = CONFIGURATION.format(
            host=HOST,
            server_port=self._server.port,
            port=self.port,
            users=self._home.write("users.txt", f'"{USER}" ""\n'),
            user=USER,
            sessions_max=self._sessions_max,
        )
        return self._home.write("pgbouncer.ini", text)

    def _answers(self) -> bool:
        """Asks for the console, which nobody else would have on that port."""
        try:
            psycopg.connect(self.dsn(CONSOLE)).close()
        except psycopg.OperationalError:
            return False
        return True
