"""A statement of the user's that the database refuses is told as what it is, not as a broken store."""

from __future__ import annotations

import pytest

from ropewalk import Context, RopewalkError, job
from tests.apps import MakeApp, on_shared_stores

raised: list[BaseException] = []


@job(max_attempts=1)
async def book(ctx: Context, sql: str) -> None:
    try:
        async with ctx.transaction() as tx:
            await tx.execute(sql)
            tx.complete(None)
    except BaseException as error:
        raised.append(error)
        raise


@on_shared_stores
@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("INSERT INTO ordres VALUES (1)", "ordres"),
        ("SELECT nope", "nope"),
        ("SELEC 1", "SELEC"),
        ("INSERT INTO job_type_of_mine (a) VALUES (1)", "job_type_of_mine"),
    ],
)
async def test_a_mistake_in_a_statement_raises_the_error_of_the_driver(make_app: MakeApp, sql: str, named: str) -> None:
    raised.clear()
    app = make_app(book)
    async with app.running():
        info = await app.wait((await app.enqueue(book(sql))).id, timeout=20)
    assert info.error is not None
    assert named in info.error.message
    assert not isinstance(raised[0], RopewalkError), raised[0]
    assert not any(word in str(raised[0]) for word in ("backup", "schema was changed", "check the URL"))
