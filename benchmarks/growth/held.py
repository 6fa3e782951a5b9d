"""Somebody who forgot to end a transaction: its snapshot keeps every row that is removed after it was opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

import psycopg

from ropewalk.backends.sqlite.library import sqlite

SQLITE: Final = "sqlite:///"


@contextmanager
def held_transaction(url: str) -> Iterator[None]:
    """In PostgreSQL it also has an id, so it holds back what a mere reader would not."""
    if url.startswith(SQLITE):
        with closing(sqlite.connect(url.removeprefix(SQLITE), isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
            yield
        return
    with psycopg.connect(url) as session:
        session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        session.execute("SELECT count(*) FROM pg_class").fetchone()
        session.execute("SELECT pg_current_xact_id()").fetchone()
        yield
        session.rollback()
