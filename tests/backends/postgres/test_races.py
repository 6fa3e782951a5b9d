"""Transactions that really run at once: two stores, threads of their own, one database.

Each race is run many times; what is asserted holds whoever wins.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import psycopg
import pytest

from ropewalk.backends.postgres import PostgresStore
from ropewalk.backends.sql.claim import cache
from ropewalk.backends.sql.claim.cache import ClaimCache
from ropewalk.domain.jobs.operations import RetryRequest
from ropewalk.domain.jobs.record import DEFAULT_TENANT, JobRecord, NewJob
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.errors import RopewalkError
from ropewalk.ports.store.leases import Holder, Renewal
from ropewalk.ports.store.submission import Accepted, Submission
from ropewalk.testing.contract.builders import (
    BOOM,
    claim_request,
    gate_on,
    keyed,
    new_job,
    settlement,
    tree,
    worker_card,
)
from tests.backends.postgres.conftest import OpenStore

pytestmark = pytest.mark.asyncio

ROUNDS: Final = 25
MANY: Final = 40


async def submitted(store: PostgresStore, *jobs: NewJob, under: Holder | None = None) -> list[Accepted]:
    [answer] = await store.submit([Submission(jobs=jobs, under=under)])
    if isinstance(answer, RopewalkError):
        raise answer
    return answer


async def claimed(store: PostgresStore, limit: int, *, owner: str, types: Sequence[str] = ("t",)) -> list[JobRecord]:
    return (await store.claim(claim_request(limit=limit, owner=owner, types=types))).jobs


async def status(store: PostgresStore, job_id: str) -> Status:
    return (await store.get(DEFAULT_TENANT, [job_id])).jobs[job_id].status


def holder(job: JobRecord) -> Holder:
    assert job.owner is not None
    return Holder(seq=job.seq, fence=job.fence, owner=job.owner)


async def test_one_key_submitted_twice_at_once_is_one_job(open_store: OpenStore) -> None:
    one, other = await open_store(), await open_store()
    for number in range(ROUNDS):
        new = [keyed(f"k{number}", id=f"{side}{number}") for side in "ab"]
        answers = await asyncio.gather(submitted(one, new[0]), submitted(other, new[1]))
        [first], [second] = answers
        assert first.id == second.id
        assert sorted((first.duplicate, second.duplicate)) == [False, True]


async def test_a_key_taken_while_its_job_ends(open_store: OpenStore) -> None:
    """Either the old job, or a new one after it: never two open ones, and the key is closed with the last."""
    one, other = await open_store(), await open_store()
    for number in range(ROUNDS):
        await submitted(one, keyed(f"k{number}", id=f"a{number}"))
        [job] = await claimed(one, 1, owner="w")
        _, [again] = await asyncio.gather(
            one.settle("w", [settlement(job)]), submitted(other, keyed(f"k{number}", id=f"b{number}"))
        )
        assert again.id == f"{'a' if again.duplicate else 'b'}{number}"
        if not again.duplicate:
            [job] = await claimed(one, 1, owner="w")
            await one.settle("w", [settlement(job)])
        [third] = await submitted(other, keyed(f"k{number}", id=f"c{number}"))
        assert not third.duplicate, "the key of an ended job stayed open"
        [job] = await claimed(one, 1, owner="w")
        await one.settle("w", [settlement(job)])


async def test_a_locked_job_keeps_no_other_from_being_renewed(open_store: OpenStore, url: str) -> None:
    """A slow transaction of somebody else on one row: that one is busy, not lost, and the others get their time."""
    store = await open_store()
    await submitted(store, new_job(id="a"), new_job(id="b"))
    jobs = {job.id: job for job in await claimed(store, 2, owner="w")}
    renewals = [Renewal(seq=job.seq, fence=job.fence, lease_us=3_600_000_000) for job in jobs.values()]
    with psycopg.connect(url.partition("?")[0]) as user:
        user.execute("SELECT 1 FROM jobs.running WHERE seq = %s FOR UPDATE", (jobs["a"].seq,))
        async with asyncio.timeout(5):
            answer = await store.renew("w", renewals)
    assert (answer.lost, answer.busy) == ([], [jobs["a"].seq])
    before = {job_id: job.lease_expires_at for job_id, job in jobs.items()}
    after = {job.id: job.lease_expires_at for job in (await store.get(DEFAULT_TENANT, ["a", "b"])).jobs.values()}
    assert after["a"] == before["a"]
    assert (after["b"] or 0) > (before["b"] or 0)
    assert (await store.renew("w", renewals)).busy == []


async def test_a_worker_whose_row_is_held_hears_that_it_is_to_drain(open_store: OpenStore, url: str) -> None:
    """Its own claims hold that row often: the sign of life is left out then, what it was told is not."""
    store = await open_store()
    await store.register(worker_card("w"))
    await store.drain("w")
    [before] = await store.workers()
    with psycopg.connect(url.partition("?")[0]) as user:
        user.execute("SELECT 1 FROM jobs.worker FOR UPDATE")
        async with asyncio.timeout(5):
            assert (await store.renew("w", [])).drain
    assert (await store.workers())[0].beat_at == before.beat_at
    await store.renew("w", [])
    assert (await store.workers())[0].beat_at > before.beat_at


async def test_one_id_submitted_twice_at_once_is_one_job(open_store: OpenStore) -> None:
    one, other = await open_store(), await open_store()
    for number in range(ROUNDS):
        extra = keyed(f"k{number}") if number % 2 else new_job()  # by the long way, too
        batch = (new_job(id=f"same-{number}"), extra)
        first, second = await asyncio.gather(submitted(one, *batch), submitted(other, new_job(id=f"same-{number}")))
        assert sorted((first[0].duplicate, second[0].duplicate)) == [False, True]


async def test_who_depends_on_a_job_that_ends_meanwhile_is_released(open_store: OpenStore) -> None:
    """No wake-up is lost: the dependant sees the end, or the end sees the dependant."""
    one, other = await open_store(), await open_store()
    for number in range(ROUNDS):
        await submitted(one, new_job(id=f"parent-{number}"))
        [parent] = await claimed(one, 1, owner="w")
        await asyncio.gather(
            one.settle("w", [settlement(parent)]),
            submitted(other, new_job("a", id=f"child-{number}", gate=gate_on(parent.id))),
        )
        [child] = await claimed(other, 9, owner="w", types=["a"])
        assert child.id == f"child-{number}"


async def test_who_depends_on_a_group_that_closes_meanwhile_is_released(open_store: OpenStore) -> None:
    one, other = await open_store(), await open_store()
    for number in range(ROUNDS):
        await submitted(one, new_job(id=f"root-{number}"))
        [root] = await claimed(one, 1, owner="w")
        await submitted(one, new_job("b", parent_id=root.id, spawn_key="k"), under=holder(root))
        await one.settle("w", [settlement(root)])
        [member] = await claimed(one, 1, owner="w", types=["b"])
        await asyncio.gather(
            one.settle("w", [settlement(member)]),
            submitted(other, new_job("a", id=f"child-{number}", gate=gate_on(tree(root.id)))),
        )
        [child] = await claimed(other, 9, owner="w", types=["a"])
        assert child.id == f"child-{number}"


async def test_a_gate_whose_parents_end_at_once_opens_once(open_store: OpenStore) -> None:
    one, other = await open_store(), await open_store()
    for number in range(ROUNDS):
        parents = [f"p{number}-{side}" for side in "ab"]
        await submitted(one, *(new_job(id=each) for each in parents))
        await submitted(one, new_job("a", id=f"child-{number}", gate=gate_on(*parents)))
        first, second = await claimed(one, 2, owner="w")
        await asyncio.gather(one.settle("w", [settlement(first)]), other.settle("w", [settlement(second)]))
        [child] = await claimed(other, 9, owner="w", types=["a"])
        assert (child.id, child.unmet) == (f"child-{number}", 0)


async def test_a_group_settled_from_two_sides_closes_once(open_store: OpenStore) -> None:
    one, other = await open_store(), await open_store()
    for number in range(5):
        await submitted(one, new_job(id=f"root-{number}"))
        [root] = await claimed(one, 1, owner="w")
        children = [new_job("b", parent_id=root.id, spawn_key=f"k{n}") for n in range(MANY)]
        await submitted(one, *children, under=holder(root))
        members = await claimed(one, MANY, owner="w", types=["b"])
        halves = (members[::2], members[1::2])
        answers = await asyncio.gather(
            one.settle("w", [settlement(root)]),
            *(
                store.settle("w", [settlement(job) for job in half[at : at + 5]])
                for at in range(0, MANY // 2, 5)
                for store, half in zip((one, other), halves, strict=True)
            ),
        )
        closed = [group.id for answer in answers for group in answer.consequences.closed]
        assert closed == [root.id]
        record = (await other.groups(DEFAULT_TENANT, [root.id]))[root.id]
        assert (record.open, record.completed) == (0, MANY + 1)


async def test_what_was_left_for_later_is_done_once(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    await submitted(stores[0], new_job(id="root"))
    [root] = await claimed(stores[0], 1, owner="w")
    children = [new_job("b", id=f"c{n}", gate=gate_on("root")) for n in range(1500)]
    await submitted(stores[0], *children)
    await stores[0].settle("w", [settlement(root)])
    while any(consequences.more for consequences in await asyncio.gather(*(each.cascade(50) for each in stores))):
        pass
    jobs = await claimed(stores[0], 2000, owner="w", types=["b"])
    assert len(jobs) == len(children)


async def test_every_job_is_given_once(open_store: OpenStore) -> None:
    stores = [await open_store(), await open_store()]
    ids = [each.id for each in await submitted(stores[0], *(new_job() for _ in range(600)))]
    given: list[str] = []
    while len(given) < len(ids):
        batches = await asyncio.gather(*(claimed(each, 40, owner=f"w{n}") for n, each in enumerate(stores)))
        given += [job.id for batch in batches for job in batch]
        assert any(batches), "jobs are there and nobody gets them"
    assert sorted(given) == sorted(ids)


async def test_a_renewal_against_taking_it_back(open_store: OpenStore) -> None:
    """The lease ran out: it is renewed, or it is lost; never both."""
    one, other = await open_store(), await open_store()
    for number in range(ROUNDS):
        await submitted(one, new_job(id=f"j{number}", max_attempts=None, max_crashes=99))
        request = claim_request(owner="w", lease_us={"t": 1})
        [job] = (await one.claim(request)).jobs
        renewal = Renewal(seq=job.seq, fence=job.fence, lease_us=60_000_000)
        renewed, swept = await asyncio.gather(one.renew("w", [renewal]), other.sweep(10))
        assert bool(renewed.lost or renewed.busy) == bool(swept.moved), "busy: it was just being taken back"
        assert bool((await one.renew("w", [renewal])).lost) == bool(swept.moved)
        await one.cancel(DEFAULT_TENANT, [job.id], reason=None, force=True)
        await other.settle("w", [settlement(job)])


async def test_a_completion_against_a_retry_of_the_whole(open_store: OpenStore) -> None:
    """A job that fails is retried by two at once: one run more, not two."""
    one, other = await open_store(), await open_store()
    for number in range(ROUNDS):
        await submitted(one, new_job(id=f"j{number}", max_attempts=1))
        [job] = await claimed(one, 1, owner="w")
        await one.settle("w", [settlement(job, Move.FAIL, error=BOOM)])
        await asyncio.gather(*(each.retry(DEFAULT_TENANT, [job.id], RetryRequest()) for each in (one, other)))
        [again] = await claimed(one, 9, owner="w")
        assert again.run == 2
        await one.settle("w", [settlement(again)])


async def test_while_looking_is_dear_nothing_is_missed_or_given_twice(open_store: OpenStore) -> None:
    """Claims that go on where the last one stopped, and begin again when that leads nowhere."""
    store = await open_store()
    await submitted(store, *(new_job(id=f"a{number:02}") for number in range(MANY)))
    store._cache = ClaimCache(time.perf_counter)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cache, "EXPENSIVE_US", -1)
        first = await claimed(store, 10, owner="w")
        assert store._cache.sublanes is not None, "every look counts as dear"
        await submitted(store, new_job(id="urgent", priority=900))
        seen = [job.id for job in first]
        while jobs := await claimed(store, 10, owner="w"):
            seen += [job.id for job in jobs]
    assert seen[:20] == [f"a{number:02}" for number in range(20)]
    assert sorted(seen) == sorted([*(f"a{number:02}" for number in range(MANY)), "urgent"])
