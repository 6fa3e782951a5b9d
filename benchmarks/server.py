"""The PostgreSQL everything is measured on: one real server a run, durable, with room to work; a database a run of it.

Settings are the same for everybody. Those that are not PostgreSQL's own defaults keep its upkeep out of the figures: a
checkpoint in the middle of a measurement would hit one subject and not the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

import psycopg
from tests.servers.binaries import postgres_binaries
from tests.servers.databases import fresh_database
from tests.servers.postgres import Postgres, Settings

SETTINGS: Final = Settings(
    durable=True,
    shared_buffers_mb=1024,
    wal_mb_max=8192,
    connections_max=200,
    others={"checkpoint_timeout": "30min"},
)


@dataclass(frozen=True, slots=True)
class Server:
    postgres: Postgres

    def fresh_database(self) -> AbstractContextManager[str]:
        """The DSN of an empty database, after a checkpoint: what others wrote is not left for this run to flush."""
        with psycopg.connect(self.postgres.dsn(), autocommit=True) as connection:
            connection.execute("CHECKPOINT")
        return fresh_database(self.postgres)


@contextmanager
def started() -> Iterator[Server]:
    with Postgres(postgres_binaries("newest"), SETTINGS) as postgres:
        yield Server(postgres)
