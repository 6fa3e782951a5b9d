"""Schemas that are used again: nothing of the last user is left, and everything of the maker is there."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.errors import LockNotAvailable
from psycopg.sql import SQL, Identifier

from tests.servers import schemas as module
from tests.servers.postgres import Postgres
from tests.servers.schemas import SMALL_BYTES_MAX, Schemas

TABLES = """
CREATE SCHEMA {0};
CREATE SEQUENCE {0}.counter START 5;
CREATE TABLE {0}.note (id bigint GENERATED ALWAYS AS IDENTITY, body text NOT NULL);
CREATE TABLE {0}.parted (place integer NOT NULL) PARTITION BY LIST (place);
CREATE TABLE {0}.first PARTITION OF {0}.parted FOR VALUES IN (1);
CREATE TABLE {0}.setting (name text PRIMARY KEY, value integer NOT NULL);
INSERT INTO {0}.setting VALUES ('epoch', 0), ('control', 0);
"""
EVERYTHING = """
SELECT
    nextval('counter'), (SELECT count(*) FROM note), (SELECT count(*) FROM parted),
    (SELECT string_agg(name || '=' || value, ' ' ORDER BY name) FROM setting)
"""
UNTOUCHED = (5, 0, 0, "control=0 epoch=0")


@pytest.fixture
def schemas(postgres: Postgres, postgres_database: str) -> Iterator[Schemas]:
    def make(name: str) -> None:
        with psycopg.connect(postgres_database, autocommit=True) as db:
            db.execute(SQL(TABLES).format(Identifier(name)))

    made = Schemas(postgres_database, make)
    yield made
    made.close()


def inside(dsn: str, schema: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(dsn, autocommit=True, options=f"-csearch_path={schema}")


@pytest.mark.parametrize("rows", [1, SMALL_BYTES_MAX // 8])
def test_it_is_as_it_was_made(schemas: Schemas, postgres_database: str, rows: int) -> None:
    schema = schemas.take()
    with inside(postgres_database, schema) as db:
        assert db.execute(EVERYTHING).fetchone() == UNTOUCHED
        db.execute("INSERT INTO note (body) SELECT 'text' FROM generate_series(1, %s)", (rows,))
        db.execute("INSERT INTO parted VALUES (1)")
        db.execute("UPDATE setting SET value = 7 WHERE name = 'epoch'")
        db.execute("DELETE FROM setting WHERE name = 'control'")
        db.execute("INSERT INTO setting VALUES ('new', 1)")
    schemas.give_back(schema)
    assert schemas.take() == schema
    with inside(postgres_database, schema) as db:
        assert db.execute(EVERYTHING).fetchone() == UNTOUCHED
        assert db.execute("INSERT INTO note (body) VALUES ('text') RETURNING id").fetchone() == (1,)
        assert db.execute("SELECT pg_relation_size('note') <= %s", (SMALL_BYTES_MAX,)).fetchone() == (True,)


def test_two_at_once_are_two(schemas: Schemas, postgres_database: str) -> None:
    one, other = schemas.take(), schemas.take()
    with inside(postgres_database, one) as db:
        db.execute("INSERT INTO note (body) VALUES ('mine')")
    with inside(postgres_database, other) as db:
        assert db.execute(EVERYTHING).fetchone() == UNTOUCHED


def test_a_transaction_left_open_is_an_error(
    schemas: Schemas, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_WAIT", "100ms")
    schema = schemas.take()
    with inside(postgres_database, schema) as left, left.transaction():
        left.execute("UPDATE setting SET value = 1")
        schemas.give_back(schema)
        with pytest.raises(LockNotAvailable):
            schemas.take()
    assert schemas.take() != schema
