"""How a statement is numbered, and its values put in order."""

from __future__ import annotations

import pytest
from psycopg.adapt import Transformer

from ropewalk.backends.postgres.wire.statement import Given, Statement


@pytest.mark.parametrize(
    ("statement", "values", "numbered", "sent"),
    [
        (b"COMMIT", None, b"COMMIT", None),
        (b"SELECT '100%'", None, b"SELECT '100%'", None),
        (b"SELECT %s, '%%s', %s", ("a", "b"), b"SELECT $1, '%s', $2", [b"a", b"b"]),
        (b"SELECT %(b)s, %(a)s, %(b)s", {"a": "x", "b": "y", "c": "z"}, b"SELECT $1, $2, $1", [b"y", b"x"]),
        (b"SELECT %(1)s::text[]", {"1": "{}"}, b"SELECT $1::text[]", [b"{}"]),
        (b"SELECT %s", (None,), b"SELECT $1", [None]),
    ],
)
def test_a_statement_is_numbered(statement: bytes, values: Given, numbered: bytes, sent: list[bytes | None]) -> None:
    bound = Statement(statement, values).bound(Transformer())
    assert bound.statement == numbered
    assert (None if bound.values is None else list(bound.values)) == sent
    assert len(bound.types) == len(sent or ())
