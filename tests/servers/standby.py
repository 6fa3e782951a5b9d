"""A standby of a running server: it follows every change, and takes over when it is promoted."""

from __future__ import annotations

import time
from typing import Final

import psycopg

from tests.servers.binaries import Binaries
from tests.servers.free_port import HOST
from tests.servers.postgres import START_SECONDS_MAX, USER, Postgres, Settings

LOOK_SECONDS: Final = 0.02


class Standby(Postgres):
    def __init__(self, binaries: Binaries, primary: Postgres, settings: Settings | None = None) -> None:
        self._primary = primary
        super().__init__(binaries, settings)

    def follow(self) -> None:
        """From here on no commit of the primary is acknowledged before this one has it, too."""
        with psycopg.connect(self._primary.dsn(), autocommit=True) as db:
            until = time.monotonic() + START_SECONDS_MAX
            db.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            db.execute("SELECT pg_reload_conf()")
            while db.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone() is None:
                assert time.monotonic() < until, "the standby does not follow"
                time.sleep(LOOK_SECONDS)

    def promote(self) -> None:
        with psycopg.connect(self.dsn(), autocommit=True) as db:
            assert db.execute("SELECT pg_promote()").fetchone() == (True,)

    def _make_cluster(self) -> None:
        source = ("-h", HOST, "-p", str(self._primary.port), "-U", USER)
        options = ("--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
        copy = self._binaries.folder / "pg_basebackup"
        self._home.run(copy, "-D", self._data, *source, *options, env=self._binaries.env)
