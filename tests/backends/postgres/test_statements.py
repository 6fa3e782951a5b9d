"""Every statement is one the server understands, and those who only look lock nothing."""

from __future__ import annotations

import re

import psycopg
import pytest
from msgspec import structs
from tests.backends.postgres.conftest import OpenStore

from ropewalk.backends.postgres.statements import READING, SQL

PARTS = {"search_one_of", "search_tag", "search_error", "search_completed", "search_page"}
"""of statements that a search puts together"""


@pytest.mark.asyncio
async def test_all_are_understood(open_store: OpenStore, url: str) -> None:
    await open_store()
    with psycopg.connect(url.partition("?")[0]) as db:
        db.execute("SET search_path TO jobs")
        for name, block in structs.asdict(SQL).items():
            if name not in PARTS:
                numbers = iter(range(1, 100))
                statement = re.sub("%s", lambda _: f"${next(numbers)}", block)  # noqa: B023  used at once
                db.execute(f"PREPARE {name} AS {statement}".encode())


def test_readers_lock_nothing() -> None:
    assert "FOR UPDATE" in SQL.load_jobs
    assert not [name for name, block in structs.asdict(READING).items() if "FOR UPDATE" in block]
