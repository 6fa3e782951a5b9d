"""Every verb on documents reaches them by an index that leads past no others, whatever the statistics say."""

from __future__ import annotations

import re

import psycopg
import pytest
from psycopg.abc import QueryNoTemplate

from ropewalk.backends.postgres.connections import settings_in
from ropewalk.backends.postgres.statements import READING, SQL
from ropewalk.backends.postgres.tx import encoded_statements
from tests.backends.postgres.conftest import OpenStore
from tests.backends.postgres.test_statements import numbered

pytestmark = pytest.mark.asyncio

FILLED = """
INSERT INTO document (kind, id, number, rev, tenant, topic, created_at, updated_at, due_at, expires_at, body)
SELECT 'k' || n % 2, n, n, n, 't' || (n > 10)::int, 'x' || n % 5, n, n, n, n, '' FROM generate_series(1, 20000) AS n
"""
BY_ID = ("document_pkey", "kind = , id = ")
WANTED = (
    ("lock_documents", *BY_ID),
    ("documents_named", *BY_ID),
    ("update_documents", *BY_ID),
    ("delete_documents", *BY_ID),
    ("load_documents", "document_of_kind", "kind = , number = "),
    ("hide_documents", "document_of_kind", "kind = , number = "),
    ("documents_of_kind", "document_of_kind", "kind = , number > "),
    ("newest_documents_of_kind", "document_of_kind", "kind = , number < "),
    ("documents_of_tenant", "document_of_tenant", "kind = , tenant = , number > "),
    ("newest_documents_of_tenant", "document_of_tenant", "kind = , tenant = , number < "),
    ("documents_of_topic", "document_of_topic", "kind = , topic = , number > "),
    ("newest_documents_of_topic", "document_of_topic", "kind = , topic = , number < "),
    ("count_documents_of_kind", "document_of_tenant", "kind = "),
    ("count_documents_of_tenant", "document_of_tenant", "kind = , tenant = "),
    ("count_documents_of_topic", "document_of_topic", "kind = , topic = "),
    ("bring_documents_nearer", "document_ahead", "kind = , updated_at > "),
    ("due_documents", "document_due", "kind = , due_at <= "),
    ("prune_documents", "document_expiry", "expires_at <= "),
)


async def test_every_statement_uses_its_index(open_store: OpenStore, url: str) -> None:
    """With 20 000 documents of two kinds, two tenants and five topics, analysed, so that the planner has a choice."""
    await open_store()
    with psycopg.connect(url.partition("?")[0]) as db:
        for name, value in settings_in("jobs").items():
            db.execute("SELECT set_config(%s, %s, false)", (name, value))
        db.execute(FILLED)
        db.execute("ANALYZE document")
        found = tuple((name, *_reached(db, name, getattr(SQL, name))) for name, _, _ in WANTED)
        assert found == WANTED
        looking = tuple((name, *_reached(db, f"r_{name}", getattr(READING, name))) for name, _, _ in WANTED)
        assert looking == WANTED


def _reached(db: psycopg.Connection[tuple[str, ...]], name: str, block: str) -> tuple[str, str]:
    """The index by which a statement finds documents, and the columns that are compared in it."""
    [statement] = encoded_statements(block)
    prepared: QueryNoTemplate = f"PREPARE {name} AS {numbered(statement.decode())}".encode()
    db.execute(prepared)
    types = db.execute("SELECT parameter_types FROM pg_prepared_statements WHERE name = %s", (name,)).fetchone()
    assert types is not None
    nulls = ", ".join("NULL" for _ in types[0])
    explained: QueryNoTemplate = f"EXPLAIN (COSTS OFF) EXECUTE {name} ({nulls})".encode()
    lines = [line for (line,) in db.execute(explained).fetchall()]
    scans = [
        (index[1], ", ".join(re.findall(r"(?<![\w.])\(?(\w+ (?:=|<=|>=|<|>) )", _condition(lines[at + 1]))))
        for at, line in enumerate(lines)
        if (index := re.search(r"Index (?:Only )?Scan (?:Backward )?using (document_\w+)", line))
    ]
    [only] = scans
    return only


def _condition(line: str) -> str:
    assert "Index Cond: " in line, line
    return line.replace("document.", "").replace("document_1.", "")
