"""O4: counters that somebody else is folding are passed over, and nothing is counted twice or lost."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.time import HOUR
from ropewalk.ports.store.capabilities import STATISTICS
from ropewalk.ports.store.core import Store
from ropewalk.testing.contract.builders import new_job
from tests.backends.postgres.conftest import OpenStore
from tests.backends.postgres.test_races import submitted

pytestmark = pytest.mark.asyncio

ALL = 1000


async def test_what_somebody_folds_is_passed_over(open_store: OpenStore, url: str) -> None:
    """And nobody waits, neither for rows nor for sums: another sum is put beside one that is held."""
    store = await open_store()
    await submitted(store, new_job())
    assert await store.fold_counters(None, ALL) == 1
    await submitted(store, new_job())
    await submitted(store, new_job())
    with psycopg.connect(url.partition("?")[0]) as other:
        other.execute("SELECT 1 FROM jobs.counters ORDER BY id LIMIT 1 FOR UPDATE")
        other.execute("SELECT 1 FROM jobs.counter_sums FOR UPDATE")
        async with asyncio.timeout(5):
            assert await store.fold_counters(None, ALL) == 1
        assert await _submitted(store) == 3
        assert other.execute(
            "SELECT max(n) FROM (SELECT count(*) n FROM jobs.counter_sums GROUP BY span_us) s"
        ).fetchone() == (2,)
    assert await store.fold_counters(None, ALL) == 1
    assert await _submitted(store) == 3
    with psycopg.connect(url.partition("?")[0]) as other:
        assert other.execute("SELECT count(*) FROM jobs.counter_sums").fetchone() == (3,), "one for each span again"


async def test_many_fold_while_jobs_come(open_store: OpenStore) -> None:
    """Every one of them is counted at every instant."""
    stores = [await open_store() for _ in range(3)]
    for number in range(1, 13):
        await asyncio.gather(*(submitted(store, new_job(), new_job("a")) for store in stores))
        folds = [store.fold_counters(None, 5) for store in stores]
        told, *_ = await asyncio.gather(_submitted(stores[0]), *folds)
        assert told == number * 6
    while await stores[1].fold_counters(None, ALL):
        pass
    assert await _submitted(stores[2]) == 12 * 6


async def _submitted(store: Store) -> int:
    told = await STATISTICS.of(store).stats("default", StatsQuery(last_us=HOUR))
    assert sum(told.states.values()) == told.flow.submitted
    return told.flow.submitted
