"""Searching jobs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.search import Filter, Order, matches
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.errors import InvalidInput
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, keyed, new_job

FILTERS: Mapping[str, Filter] = {
    "everything": Filter(),
    "types": Filter(types=("a", "zzz")),
    "no types": Filter(types=()),
    "states": Filter(states=(State.FAILED, State.RUNNING)),
    **{f"state {state}": Filter(states=(state,)) for state in State},
    "queues": Filter(queues=("mail", "maps")),
    "priorities": Filter(priorities=(5, -5)),
    "one tag": Filter(tags={"colour": "red"}),
    "two tags": Filter(tags={"colour": "red", "size": "xl"}),
    "a tag with odd characters": Filter(tags={"we'ird \"%_": "vàl'ue"}),
    "created after": Filter(created_after=1_893_456_005_000_000),
    "created before": Filter(created_before=1_893_456_005_000_000),
    "created between": Filter(created_after=1_893_456_002_000_000, created_before=1_893_456_007_000_000),
    "updated after": Filter(updated_after=1_893_456_008_000_000),
    "workflow": Filter(workflow_id="w1"),
    "group": Filter(group_id="g1"),
    "group of a root": Filter(group_id="red"),
    "parent": Filter(parent_id="p1"),
    "correlation": Filter(correlation_id="corr-1"),
    "error category": Filter(error_categories=(Category.TEMPORARY,)),
    "error code": Filter(error_codes=("boom", "429")),
    "text: id": Filter(text="re"),
    "text: type": Filter(text="a"),
    "text: key": Filter(text="key-"),
    "text: correlation": Filter(text="corr"),
    "text: error code": Filter(text="429"),
    "text: wildcards are letters": Filter(text="%"),
    "text: part of an id": Filter(text="ed"),
    "text: another case": Filter(text="RED"),
    "several": Filter(types=("t",), states=(State.SCHEDULED, State.DELAYED), queues=("mail",)),
    "several that exclude one another": Filter(types=("t",), text="a"),
}


class SearchContract(Contract):
    """A search finds exactly the jobs that `domain.search.matches` accepts, in the order asked for (O3)."""

    @pytest.mark.parametrize("wanted", FILTERS.values(), ids=FILTERS)
    async def test_a_filter_finds_what_matches(self, bench: Bench, wanted: Filter) -> None:
        ids = await _zoo(bench)
        jobs = list((await bench.store.get("default", ids)).jobs.values())
        expected = [job.id for job in jobs if matches(job, wanted, bench.runtime.now())]
        page = await bench.store.search("default", wanted, order=Order.CREATED_ASC, cursor=None, limit=100)
        assert [job.id for job in page.jobs] == expected
        assert page.jobs == [job for job in jobs if job.id in expected]
        assert (page.next_cursor, page.now) == (None, bench.runtime.now())
        assert await bench.store.count("default", wanted) == len(expected)
        for limit in range(1, len(expected) + 2):
            assert await bench.store.count("default", wanted, limit=limit) == min(limit, len(expected))

    async def test_time_alone_moves_a_job_from_state_to_state(self, bench: Bench) -> None:
        job_id = await bench.add(delay_us=SECOND)
        assert await _ids(bench, Filter(states=(State.DELAYED,))) == [job_id]
        await bench.runtime.advance(1)
        assert await _ids(bench, Filter(states=(State.DELAYED,))) == []
        assert await _ids(bench, Filter(states=(State.SCHEDULED,))) == [job_id]

    async def test_jobs_are_found_in_every_order(self, bench: Bench) -> None:
        ids = [await bench.add(id=name) for name in ("b", "c", "a")]
        await bench.runtime.advance(1)
        await bench.settle(await bench.claim_one())
        await bench.runtime.advance(1)
        await bench.store.cancel("default", ["a"], reason=None, force=False)
        assert await _ids(bench, order=Order.CREATED_ASC) == ids
        assert await _ids(bench, order=Order.CREATED_DESC) == ids[::-1]
        assert await _ids(bench, order=Order.UPDATED_DESC) == ["a", "b", "c"]

    @pytest.mark.parametrize("order", list(Order))
    async def test_pages_add_up_to_the_whole_result(self, bench: Bench, order: Order) -> None:
        for number in range(7):
            await bench.add(id=f"id-{number}")
            await bench.runtime.advance(number % 2)
        whole = await _ids(bench, order=order)
        for limit in (1, 2, 3, 7, 8):
            assert [each for page in await _pages(bench, order, limit) for each in page] == whole
            assert [len(page) for page in await _pages(bench, order, limit)][:-1] == [limit] * ((7 - 1) // limit)

    async def test_a_cursor_stays_valid_while_jobs_come_and_go(self, bench: Bench) -> None:
        for number in range(6):
            await bench.settle(await bench.running(id=f"id-{number}"))
        page = await bench.store.search("default", Filter(), order=Order.CREATED_DESC, cursor=None, limit=3)
        assert [job.id for job in page.jobs] == ["id-5", "id-4", "id-3"]
        await bench.store.delete("default", ["id-3", "id-2"])
        await bench.add(id="late")
        rest = await bench.store.search("default", Filter(), order=Order.CREATED_DESC, cursor=page.next_cursor, limit=3)
        assert ([job.id for job in rest.jobs], rest.next_cursor) == (["id-1", "id-0"], None)

    async def test_paging_by_update_time_never_shows_a_job_twice(self, bench: Bench) -> None:
        for number in range(4):
            await bench.add(id=f"id-{number}")
            await bench.runtime.advance(1)
        page = await bench.store.search("default", Filter(), order=Order.UPDATED_DESC, cursor=None, limit=2)
        await bench.store.cancel("default", ["id-0"], reason=None, force=False)
        rest = await bench.store.search("default", Filter(), order=Order.UPDATED_DESC, cursor=page.next_cursor, limit=9)
        assert [job.id for job in [*page.jobs, *rest.jobs]] == ["id-3", "id-2", "id-1"]

    async def test_a_cursor_of_another_order_is_refused(self, bench: Bench) -> None:
        for _ in range(2):
            await bench.add()
        page = await bench.store.search("default", Filter(), order=Order.CREATED_ASC, cursor=None, limit=1)
        for cursor in (page.next_cursor, "no cursor at all"):
            with pytest.raises(InvalidInput) as refused:
                await bench.store.search("default", Filter(), order=Order.CREATED_DESC, cursor=cursor, limit=1)
            assert refused.value.field == "cursor"


async def _zoo(bench: Bench) -> list[str]:
    """Jobs of every state, and something of everything a filter can ask for; in order of submission."""
    at = bench.runtime
    red = {"colour": "red", "size": "xl"}
    ids = [
        await bench.add(id="red", tags=red, queue="mail", priority=5),
        await bench.add("a", id="ready", tags={"colour": "red"}, workflow_id="w1", group_id="g1", parent_id="p1"),
    ]
    await at.advance(3)
    ids.append(await bench.add(id="delayed", delay_us=HOUR, queue="mail", correlation_id="corr-1"))
    ids.append(await bench.add(id="100%", delay_us=HOUR, tags={"we'ird \"%_": "vàl'ue"}, priority=-5))
    await at.advance(3)
    odd = ErrorInfo(category=Category.RATE_LIMITED, message="m", code="429")
    ends = {Move.COMPLETE: None, Move.FAIL: BOOM, Move.BURY: odd, Move.CANCEL: None, Move.RETRY: BOOM}
    for move, error in ends.items():
        job_id = f"did-{move}"
        [accepted] = await bench.submit(keyed(f"key-{move}", id=job_id, type="b", queue="maps", group_id="red"))
        ids.append(accepted.id)
        await at.advance(1)
        await bench.settle(await bench.claim_one(types=["b"]), move, error=error, delay_us=HOUR)
    ids.append((await bench.running("b", id="running", correlation_id="corr-2")).id)
    await bench.submit(new_job("a", id="red", tenant="acme", queue="mail", tags=red))
    return ids


async def _ids(bench: Bench, wanted: Filter | None = None, *, order: Order = Order.CREATED_ASC) -> list[str]:
    page = await bench.store.search("default", wanted or Filter(), order=order, cursor=None, limit=1000)
    return [job.id for job in page.jobs]


async def _pages(bench: Bench, order: Order, limit: int) -> list[list[str]]:
    pages: list[list[str]] = []
    cursor: str | None = None
    while cursor is not None or not pages:
        page = await bench.store.search("default", Filter(), order=order, cursor=cursor, limit=limit)
        pages.append([job.id for job in page.jobs])
        cursor = page.next_cursor
        assert len(pages) < 100, "the pages never end"
    return pages
