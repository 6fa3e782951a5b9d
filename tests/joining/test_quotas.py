"""S9, S6: quotas in a user's own transaction: enforced there, and holding nobody up until it ends."""

from __future__ import annotations

import asyncio

import pytest

from ropewalk import App, Filter, QuotaExceeded, Rate
from tests.joining.conftest import Place, on
from tests.joining.drivers import ON_POSTGRES, ON_SQLITE, Driver, PsycopgAsync
from tests.joining.hearing import SECONDS_MAX
from tests.joining.jobs import greet
from tests.joining.test_racing import second

pytestmark = pytest.mark.asyncio


async def used(app: App) -> int:
    use = await app.quota()
    assert use is not None
    return use.submissions


@on(*ON_POSTGRES, *ON_SQLITE)
async def test_what_is_over_is_refused_and_the_transaction_goes_on(app: App, driver: Driver) -> None:
    """S9: what the transaction itself enqueued counts; a refused batch leaves nothing."""
    await app.set_quota(pending=3)
    await driver.enqueue_many(app, [greet("ada"), greet("bob")])
    await driver.run("INSERT INTO mine VALUES ('kept')")
    with pytest.raises(QuotaExceeded) as refused:
        await driver.enqueue_many(app, [greet("cyd"), greet("dan")])
    assert (refused.value.limit, refused.value.current, refused.value.maximum) == ("pending", 2, 3)
    await driver.enqueue(app, greet("eve"))
    await driver.commit()
    assert await app.count(Filter()) == 3
    assert await driver.run("SELECT word FROM mine") == [("kept",)]


@on(*ON_POSTGRES, *ON_SQLITE)
async def test_a_rate_counts_what_comes_in_this_way(app: App, driver: Driver) -> None:
    """S9: together with what comes in otherwise."""
    await app.set_quota(submissions=Rate(3, per=3600))
    await driver.enqueue(app, greet("known"))  # in transactions the rate holds as soon as one has seen it
    await driver.commit()
    before = await used(app)
    for number in range(3 - before):
        await driver.enqueue(app, greet(f"ada {number}"))
        await driver.commit()
    assert await used(app) == 3
    with pytest.raises(QuotaExceeded) as refused:
        await driver.enqueue(app, greet("bob"))
    assert refused.value.limit == "submissions"
    await driver.rollback()
    with pytest.raises(QuotaExceeded):
        await app.enqueue(greet("cyd"))


@on(PsycopgAsync)
async def test_an_open_transaction_holds_nobody_up(app: App, driver: Driver, place: Place) -> None:
    """S9: neither enqueues of the same tenant nor other users' transactions; what it holds counts when it commits."""
    await app.set_quota(pending=3, submissions=Rate(100, per=3600))
    await driver.enqueue(app, greet("ada"))
    await driver.commit()
    await driver.enqueue(app, greet("bob"))
    async with asyncio.timeout(SECONDS_MAX), second(type(driver), place) as other:
        await app.enqueue(greet("cyd"))
        await other.enqueue(app, greet("dan"))
        await other.commit()
        with pytest.raises(QuotaExceeded):
            await app.enqueue(greet("eve"))
    await driver.commit()
    use = await app.quota()
    assert use is not None
    assert use.pending == 4, "over, by what an open transaction held"
    with pytest.raises(QuotaExceeded):
        await driver.enqueue(app, greet("fay"))
    await driver.rollback()
