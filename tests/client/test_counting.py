"""Counting jobs up to a limit."""

from __future__ import annotations

import pytest

from ropewalk import Filter, InvalidInput, State, job
from tests.apps import MakeApp


@job
async def plain(number: int) -> int:
    return number


async def test_a_count_stops_at_its_limit(make_app: MakeApp) -> None:
    app = make_app(plain)
    await app.enqueue_many([plain(number) for number in range(5)], tags={"batch": "1"})
    await app.enqueue_many([plain(number) for number in range(3)], delay=60)
    assert [await app.count(limit=limit) for limit in (1, 7, 8, 9, None)] == [1, 7, 8, 8, 8]
    waiting = Filter(states=(State.SCHEDULED, State.DELAYED), types=plain)
    assert [await app.count(waiting, limit=limit) for limit in (1, 7, 8, 9, None)] == [1, 7, 8, 8, 8]
    tagged = Filter(tags={"batch": "1"})
    assert [await app.count(tagged, limit=limit) for limit in (4, 5, 6)] == [4, 5, 5]
    assert app.sync.count(limit=3) == 3
    assert await app.tenant("acme").count(limit=3) == 0


@pytest.mark.parametrize("limit", [0, -1, True, 1.5])
async def test_a_limit_is_a_number_from_one_on(make_app: MakeApp, limit: int) -> None:
    app = make_app(plain)
    with pytest.raises(InvalidInput, match=f"limit={limit}"):
        await app.count(limit=limit)
