"""Every statement is one the server understands, and those who only look lock nothing."""

from __future__ import annotations

import itertools
import re

import psycopg
import pytest
from msgspec import structs

from ropewalk.backends.postgres.columns import PARTS as COLUMNS
from ropewalk.backends.postgres.connections import settings_in
from ropewalk.backends.postgres.statements import READING, SQL
from ropewalk.backends.postgres.tx import encoded_statements
from ropewalk.backends.sql.blocks import part
from ropewalk.domain.jobs.quarantine import must_start_at_once
from tests.backends.postgres.conftest import OpenStore
from tests.domain.records import a_job

PARTS = {"next_seq", "one_column", "search_completed", "search_limit"}
"""Parts of statements that have no placeholder of their own."""
PLACEHOLDER = re.compile(r"\{[a-z]+\}")
"""A statement with one is put together before it is sent."""


@pytest.mark.asyncio
async def test_all_are_understood(open_store: OpenStore, url: str) -> None:
    await open_store()
    with psycopg.connect(url.partition("?")[0]) as db:
        db.execute("SET search_path TO jobs")
        for name, block in structs.asdict(SQL).items():
            # An empty block is one that this store leaves to another statement.
            if block and name not in PARTS and not PLACEHOLDER.search(block):
                for at, part in enumerate(encoded_statements(block)):
                    db.execute(f"PREPARE {name}_{at} AS {numbered(part.decode())}".encode())


def test_readers_lock_nothing() -> None:
    assert "FOR UPDATE" in SQL.load_jobs
    assert not [name for name, block in structs.asdict(READING).items() if "FOR UPDATE" in block]


def test_a_claim_in_one_statement_knows_what_must_start_at_once(postgres_database: str) -> None:
    """The rule of the domain, for every job around the edges of it."""
    predicate = part("ropewalk.backends.postgres", "must_start_at_once", generated=COLUMNS)
    asked = (
        f"SELECT {predicate} FROM (VALUES (%s::bigint, %s::bigint, %s::bigint)) AS job (crashes, attempt, max_attempts)"
    )
    with psycopg.connect(postgres_database) as db:
        for crashes, attempt, most in itertools.product(range(3), range(5), (None, 1, 2, 3, 4, 1 << 62)):
            job = structs.replace(a_job(max_attempts=most), crashes=crashes, attempt=attempt)
            assert db.execute(asked.encode(), (crashes, attempt, most)).fetchone() == (must_start_at_once(job),), job


@pytest.mark.asyncio
async def test_what_a_remote_worker_holds_is_found_by_its_index(open_store: OpenStore, url: str) -> None:
    await open_store()
    with psycopg.connect(url.partition("?")[0]) as db:
        for name, value in settings_in("jobs").items():
            db.execute("SELECT set_config(%s, %s, false)", (name, value))
        [statement] = encoded_statements(SQL.held)
        db.execute(f"PREPARE held AS {numbered(statement.decode())}".encode())
        explained = db.execute(b"EXPLAIN (COSTS OFF) EXECUTE held ('token.1')").fetchall()
    plan = "\n".join(line for (line,) in explained)
    assert "Index Scan using running_by_remote_owner on running" in plan
    assert "One-Time Filter: (POSITION(('.'::text) IN ($1)) = 0)" in plan, "who looks at all that run is not asked"


def numbered(statement: str) -> str:
    """As the server takes it: $1 instead of the driver's %s or %(1)s, and instead of names."""
    numbers = itertools.count(1 + max(map(int, re.findall(r"%\((\d+)\)s", statement)), default=0))
    for name in dict.fromkeys(re.findall(r"(?<!:):([a-z]\w*)", statement)):
        statement = re.sub(rf"(?<!:):{name}\b", f"${next(numbers)}", statement)
    return re.sub("%s", lambda _: f"${next(numbers)}", re.sub(r"%\((\d+)\)s", r"$\1", statement))
