"""Statements and errors as each driver of a user's connection has them."""

from __future__ import annotations

import asyncpg
import psycopg
import pytest
from psycopg import errors

from ropewalk.backends.postgres.drivers.asyncpg import AsyncpgConnection, cast_from_text, numbered
from ropewalk.backends.postgres.drivers.driver import as_psycopg_error
from ropewalk.backends.postgres.faults import breaks_connection, translated
from ropewalk.errors import InvalidInput, StoreUnavailable


def test_marks_become_numbers() -> None:
    assert numbered("a = %s AND b = %s", (1, "x")) == ("a = $1 AND b = $2", [1, "x"])
    assert numbered("%(a)s, %(b)s, %(a)s", {"a": 1, "b": 2}) == ("$1, $2, $3", [1, 2, 1])
    assert numbered("a LIKE '50%%'::text", ()) == ("a LIKE '50%'::text", [])
    # Text is cast by the server; what is not text goes as it is.
    assert numbered("%s::bigint[], %s::bytea[], %s::bigint", ("{1}", [b"x"], 2))[0] == (
        "$1::text::bigint[], $2::bytea[], $3::bigint"
    )


def test_json_goes_as_text() -> None:
    assert cast_from_text("f($1), g($11), h($1)", {1: "json"}) == "f($1::text::json), g($11), h($1::text::json)"


@pytest.mark.asyncio
async def test_errors_come_as_psycopgs(postgres_database: str) -> None:
    db = await asyncpg.connect(postgres_database)
    async with db.transaction():
        speaker = AsyncpgConnection(db)
        with pytest.raises(psycopg.DataError) as unsendable:
            await speaker.execute("SELECT %s::text", ("\ud800",))
        with pytest.raises(errors.UndefinedTable):
            await speaker.execute("SELECT * FROM nowhere")
    await db.close()
    assert isinstance(translated(unsendable.value, "here"), InvalidInput)


def test_an_error_without_a_code_is_of_the_line() -> None:
    broken = as_psycopg_error(ConnectionResetError("gone"))
    assert breaks_connection(broken)
    assert isinstance(translated(broken, "here"), StoreUnavailable)


def test_a_code_nobody_knows_is_shown() -> None:
    odd = asyncpg.PostgresError("odd")
    odd.sqlstate = "ZZ999"
    assert str(as_psycopg_error(odd)) == "odd (SQLSTATE ZZ999)"
