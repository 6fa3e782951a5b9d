"""A PostgreSQL server of one's own: `with Postgres(binaries) as server: psycopg.connect(server.dsn())`.

Knows how a server lives (made, started, stopped, started again on the same port with the same data), not what is in
it: see databases.py for that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Self
from urllib.parse import quote

from tests.servers.binaries import Binaries
from tests.servers.free_port import HOST, free_port
from tests.servers.home import Home
from tests.servers.place import in_memory, on_disk

USER: Final = "ropewalk"
START_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 30.0
LOOK_SECONDS: Final = 0.005
STOPPING: Final = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
STATUS_LINE: Final = 7
"""of postmaster.pid; what pg_ctl looks at"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    durable: bool = False
    """whether a commit survives power loss; ordinary tests do without, torture and benchmarks do not"""
    by_default: bool = False
    """whether a durable server is so by the defaults, which ALTER SYSTEM can change, and not by its command line"""
    shared_buffers_mb: int = 32
    wal_mb_max: int = 256
    connections_max: int = 100
    others: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> list[str]:
        switch = "on" if self.durable else "off"
        durability = (
            {} if self.by_default else dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes"), switch)
        )
        chosen = {
            **durability,
            "shared_buffers": f"{self.shared_buffers_mb}MB",
            "max_connections": str(self.connections_max),
            "max_wal_size": f"{self.wal_mb_max}MB",
            "jit": "off",  # not every build has a compiler, and nothing here is worth compiling
            "log_checkpoints": "off",
            **self.others,
        }
        return [f"--{name}={value}" for name, value in chosen.items()]


class Postgres:
    """A cluster made at once and removed by `close`; the server runs between `start` and `stop`."""

    def __init__(self, binaries: Binaries, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.port = free_port()
        self._binaries = binaries
        self._process: subprocess.Popen[bytes] | None = None
        self._home = Home("pg", on_disk() if self.settings.durable else in_memory() or on_disk())
        self._data = self._home.path / "data"
        self._make_cluster()

    def start(self) -> None:
        """Returns when it takes connections; after an immediate stop that is after recovery."""
        assert self._process is None, "it runs already"
        self._process = self._home.start(
            self._binaries.folder / "postgres",
            *("-D", self._data),
            f"--port={self.port}",
            f"--listen_addresses={HOST}",
            f"--unix_socket_directories={self._home.path}",
            *self.settings.options(),
            env=self._binaries.env,
        )
        until = time.monotonic() + START_SECONDS_MAX
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > until:
                raise self._home.failed(f"postgres on port {self.port} did not start")
            time.sleep(LOOK_SECONDS)

    def stop(self, how: Literal["fast", "immediate"] = "fast") -> None:
        """fast: sessions end, everything is written. immediate: as if it had crashed, recovery at the next start."""
        assert self._process is not None, "it does not run"
        self._process.send_signal(STOPPING[how])
        self._process.wait(STOP_SECONDS_MAX)
        self._process = None

    def restart(self, how: Literal["fast", "immediate"] = "fast") -> None:
        self.stop(how)
        self.start()

    def close(self) -> None:
        """Nothing of it remains."""
        if self._process is not None:
            self.stop("immediate")
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

    def dsn(self, database: str = "postgres", *, over: Literal["tcp", "socket"] = "tcp") -> str:
        if over == "tcp":
            return f"postgresql://{USER}@{HOST}:{self.port}/{quote(database)}"
        return f"postgresql://{USER}@/{quote(database)}?host={quote(str(self._home.path), safe='')}&port={self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "it does not run"
        return self._process.pid

    @property
    def directory(self) -> Path:
        """Everything it writes, its log included."""
        return self._home.path

    def _make_cluster(self) -> None:
        options = ["--auth=trust", "--locale=C", "--encoding=UTF8", f"--username={USER}", "--no-sync"]
        try:
            self._home.run(self._binaries.folder / "initdb", "-D", self._data, *options, env=self._binaries.env)
        except BaseException:
            self._home.close()
            raise
        if self.settings.durable:
            os.sync()  # at once for all files; initdb's own way, a file at a time, takes two seconds longer

    def _is_ready(self) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > STATUS_LINE and lines[0] == str(self.pid) and lines[STATUS_LINE].strip() == "ready"
