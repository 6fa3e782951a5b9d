"""Limits on how many jobs of a queue, a type or a key run at once."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.limits.fleet_limit import EVERY_TENANT, FlowLimit, LimitKind
from ropewalk.domain.limits.headroom import SOON_US
from ropewalk.domain.time import SECOND
from ropewalk.domain.workflow.completion import Suspension
from ropewalk.ports.store.capabilities import LIMITS, WORKFLOWS, DatabaseStore
from ropewalk.ports.store.limits import LimitUse
from ropewalk.ports.store.submission import SkipQueue, Submission
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, LEASE, claim_request, new_job, settlement, worker_card

kinds = pytest.mark.parametrize(("kind", "name"), [("queue", "q"), ("type", "t"), ("key", "k"), ("key", "k*")])
RACES = 20


def at_most(concurrency: int, kind: LimitKind = "key", name: str = "k", *, tenant: str = "default") -> FlowLimit:
    return FlowLimit(tenant=tenant, kind=kind, name=name, concurrency=concurrency)


@needs(LIMITS)
class ConcurrencyContract(Contract):
    """No job starts while one of its limits is full, and jobs without a full limit are not held up (R13, safe-8)."""

    @kinds
    async def test_no_more_jobs_run_at_once_than_the_limit_allows(
        self, bench: Bench, kind: LimitKind, name: str
    ) -> None:
        """R13, safe-8: the next one starts when one ends."""
        await bench.store.put_limit(at_most(2, kind, name))
        ids = [await bench.add(queue="q", limit_key="k") for _ in range(4)]
        first = await bench.claimed(9)
        assert [job.id for job in first.jobs] == ids[:2]
        assert first.limited == [job.seq for job in first.jobs]
        assert await bench.claim(9, owner="other") == []
        await bench.settle(first.jobs[0])
        assert [job.id for job in await bench.claim(9)] == [ids[2]]

    @kinds
    async def test_jobs_behind_a_full_limit_hold_up_no_others(self, bench: Bench, kind: LimitKind, name: str) -> None:
        """R13, live-5: a sublane without room is passed over, whatever stands in it."""
        await bench.store.put_limit(at_most(1, kind, name))
        held = [await bench.add(queue="q", limit_key="k", priority=9) for _ in range(30)]
        free = [await bench.add("a", queue="other", limit_key="free"), await bench.add("b")]
        foreign = await bench.add(queue="q", limit_key="k", tenant="acme")
        assert {job.id for job in await bench.claim(40)} == {held[0], *free, foreign}

    @kinds
    async def test_a_line_without_room_has_its_turn(self, bench: Bench, kind: LimitKind, name: str) -> None:
        """R13, live-5: nothing comes of it, and who is next is the same in every store."""
        await bench.store.put_limit(at_most(1, kind, name))
        await bench.running(queue="q", limit_key="k")
        await bench.add(queue="q", limit_key="k")
        await bench.submit(*(new_job("a", queue=queue) for queue in "rst" for _ in range(4)))
        began = [(await bench.claim_one(turn=turn)).queue for turn in range(4)]
        assert began == ["r", "r", "s", "t"]

    async def test_a_job_is_held_back_by_each_of_its_limits(self, bench: Bench) -> None:
        """R13: its queue's, its type's and its key's."""
        for limit in (at_most(3, "queue", "q"), at_most(2, "type", "t"), at_most(1)):
            await bench.store.put_limit(limit)
        await bench.submit(*(new_job(kind, queue="q", limit_key=key) for kind in "tab" for key in ("k", None, None)))
        jobs = await bench.claim(9)
        assert len(jobs) == 3
        assert sum(job.type == "t" for job in jobs) == 2
        assert sum(job.limit_key == "k" for job in jobs) == 1

    async def test_a_limit_key_counts_in_every_queue_and_type(self, bench: Bench) -> None:
        """R13: in all queues and types of a tenant, and of no other."""
        await bench.store.put_limit(at_most(2))
        for queue in ("one", "two"):
            for type_ in ("a", "b"):
                await bench.add(type_, queue=queue, limit_key="k")
        await bench.add("a", tenant="acme", limit_key="k")
        jobs = await bench.claim(9)
        assert sorted(job.tenant for job in jobs) == ["acme", "default", "default"]

    @kinds
    async def test_a_limit_for_every_tenant_counts_their_jobs_together(
        self, bench: Bench, kind: LimitKind, name: str
    ) -> None:
        """R13: beside those that a tenant has of its own."""
        await bench.store.put_limit(at_most(3, kind, name, tenant=EVERY_TENANT))
        await bench.store.put_limit(at_most(1, kind, name, tenant="acme"))
        for tenant in ("acme", "zoo", "acme", "zoo", "zoo"):
            await bench.add(queue="q", limit_key="k", tenant=tenant)
        jobs = await bench.claim(9)
        assert sorted(job.tenant for job in jobs) == ["acme", "zoo", "zoo"]
        [use] = await bench.store.limits(EVERY_TENANT)
        assert use.in_use == 3
        assert [each.in_use for each in await bench.store.limits("acme")] == [1]
        await bench.settle(next(job for job in jobs if job.tenant == "zoo"))
        assert [job.tenant for job in await bench.claim(9)] == ["zoo"]

    async def test_a_limit_on_a_family_holds_for_each_of_its_keys(self, bench: Bench) -> None:
        """R13: customer:* is one for every customer."""
        await bench.store.put_limit(at_most(1, "key", "customer:*"))
        ids = {key: [await bench.add(limit_key=key) for _ in range(3)] for key in ("customer:1", "customer:2", "other")}
        jobs = await bench.claim(9)
        assert {job.id for job in jobs} == {ids["customer:1"][0], ids["customer:2"][0], *ids["other"]}

    async def test_the_most_specific_limit_on_a_key_holds(self, bench: Bench) -> None:
        """R13: itself, then the longest family."""
        for name, most in (("*", 1), ("c:*", 2), ("c:big", 3)):
            await bench.store.put_limit(at_most(most, "key", name))
        await bench.submit(*(new_job(limit_key=key) for key in ("c:big", "c:1", "d") for _ in range(5)))
        jobs = await bench.claim(20)
        assert [sum(job.limit_key == key for job in jobs) for key in ("c:big", "c:1", "d")] == [3, 2, 1]

    async def test_a_key_without_a_limit_is_not_limited(self, bench: Bench) -> None:
        await bench.store.put_limit(at_most(1))
        await bench.submit(*(new_job(limit_key="kk") for _ in range(3)))
        assert len(await bench.claim(9)) == 3

    async def test_a_limit_of_one_job_serves_them_in_order(self, bench: Bench) -> None:
        """R13: also across retries that wait for nothing, and whoever claims."""
        await bench.store.put_limit(at_most(1, "key", "k*"))
        ids = {key: [await bench.add(limit_key=key) for _ in range(5)] for key in ("k1", "k2")}
        ran: dict[str, list[str]] = {"k1": [], "k2": []}
        for turn in range(5):
            jobs = await bench.claim(9, owner=f"w{turn}", turn=turn)
            assert sorted(job.limit_key or "" for job in jobs) == ["k1", "k2"]
            for job in jobs:
                ran[job.limit_key or ""].append(job.id)
                await bench.settle(job)
        assert ran == ids

    async def test_each_of_very_many_keys_gets_its_turn(self, bench: Bench) -> None:
        """R13, live-5: each gets its turn, and jobs without a key are always among those looked at."""
        await bench.store.put_limit(at_most(1, "key", "c:*"))
        keys = [f"c:{number}" for number in range(900)]
        first = {accepted.id for accepted in await bench.submit(*(new_job(limit_key=key) for key in keys))}
        await bench.submit(*(new_job(limit_key=key) for key in keys))
        plain = await bench.add(priority=-1000)
        claimed = {job.id for turn in range(30) for job in await bench.claim(60, turn=turn)}
        assert claimed == {*first, plain}

    async def test_many_keys_that_a_claim_cannot_serve_are_left_out_at_once(self, bench: Bench) -> None:
        """R13, live-5: of another tenant, a paused queue, a type that is not served."""
        await bench.submit(*(new_job("b", limit_key=f"c:{n}") for n in range(1500)))
        await bench.submit(*(new_job(queue="paused", limit_key=f"c:{n}") for n in range(1500)))
        await bench.submit(*(new_job(tenant="acme", limit_key=f"c:{n}") for n in range(1500)))
        await bench.store.pause("default", "paused", paused=True)
        mine = {await bench.add(limit_key=f"c:{n}") for n in range(3)}
        assert {job.id for job in await bench.claim(9, types=["t"], tenants=("default",))} == mine

    async def test_a_claim_says_when_a_limit_may_have_room_again(self, bench: Bench) -> None:
        """R13: soon, while something is held back; never, when nothing is."""
        await bench.store.put_limit(at_most(1))
        await bench.submit(new_job(limit_key="k"), new_job(limit_key="k"))
        [job] = await bench.claim(1)
        held = await bench.claimed(1)
        assert (held.jobs, held.next_due) == ([], held.now + SOON_US)
        await bench.settle(job)
        await bench.settle(await bench.claim_one())
        assert (await bench.claimed(1)).next_due is None


@needs(LIMITS)
class DeclaredLimitContract(Contract):
    """A limit that is declared in code follows the code until somebody sets it at run time (R13)."""

    async def test_a_declared_limit_follows_the_code(self, bench: Bench) -> None:
        """R13: put again and again, by every worker that starts."""
        for most in (2, 2, 3):
            await bench.store.put_limit(structs.replace(at_most(most), declared=True))
            [use] = await bench.store.limits("default")
            assert (use.limit.concurrency, use.limit.declared) == (most, True)

    async def test_a_limit_set_at_run_time_overrides_the_code(self, bench: Bench) -> None:
        """R13: whatever code declares afterwards; when it is removed, code is heard again."""
        declared = structs.replace(at_most(2), declared=True)
        for limit in (declared, at_most(5), declared):
            await bench.store.put_limit(limit)
        [use] = await bench.store.limits("default")
        assert use.limit == at_most(5)
        await bench.store.remove_limit("default", "key", "k")
        await bench.store.put_limit(declared)
        [use] = await bench.store.limits("default")
        assert use.limit == declared


@needs(LIMITS)
class LimitChangeContract(Contract):
    """Limits can be set, changed and removed while jobs run (R13)."""

    async def test_a_limit_can_be_raised_lowered_and_removed(self, bench: Bench) -> None:
        """R13: from the next claim on; what runs goes on."""
        await bench.submit(*(new_job(limit_key="k") for _ in range(9)))
        await bench.store.put_limit(at_most(2))
        running = await bench.claim(9)
        assert len(running) == 2
        await bench.store.put_limit(at_most(3))
        running += await bench.claim(9)
        assert len(running) == 3
        await bench.store.put_limit(at_most(1))
        for job in running[:2]:
            await bench.settle(job)
            assert await bench.claim(9) == []
        await bench.settle(running[2])
        [last] = await bench.claim(9)
        assert await bench.store.remove_limit("default", "key", "k")
        assert len(await bench.claim(9)) == 5
        assert not await bench.store.remove_limit("default", "key", "k")
        await bench.settle(last)

    async def test_a_limit_of_another_tenant_is_not_mine(self, bench: Bench) -> None:
        """safe-15."""
        await bench.store.put_limit(at_most(1, tenant="acme"))
        await bench.submit(new_job(limit_key="k"), new_job(limit_key="k"))
        assert len(await bench.claim(9)) == 2
        assert await bench.store.limits("default") == []
        assert not await bench.store.remove_limit("default", "key", "k")

    async def test_a_limit_holds_in_every_store_on_the_data(self, bench: Bench) -> None:
        """R13: fleet-wide, as soon as it is set."""
        other = await bench.second()
        await bench.submit(*(new_job(limit_key="k") for _ in range(6)))
        assert len(await other.claim(1)) == 1
        await bench.store.put_limit(at_most(2))
        assert len(await other.claim(9)) == 1
        await other.store.put_limit(at_most(3))
        assert len(await bench.claim(9)) == 1
        await bench.store.remove_limit("default", "key", "k")
        assert len(await other.claim(9)) == 3

    async def test_the_list_of_limits_shows_how_much_is_in_use(self, bench: Bench) -> None:
        """R13: by kind and name; of a family, for each key."""
        limits = [at_most(9), at_most(2, "key", "c:*"), at_most(3, "queue", "q"), at_most(4, "type", "t")]
        for limit in reversed(limits):
            await bench.store.put_limit(limit)
        await bench.submit(new_job("a", limit_key="c:1", queue="q"), new_job(limit_key="c:2"), new_job(limit_key="k"))
        await bench.claim(9)
        assert await bench.store.limits("default") == [
            LimitUse(limit=limits[1], in_use=2, keys={"c:1": 1, "c:2": 1}),
            LimitUse(limit=limits[0], in_use=1),
            LimitUse(limit=limits[2], in_use=1),
            LimitUse(limit=limits[3], in_use=2),
        ]

    async def test_the_limit_that_holds_a_job_back_is_named(self, bench: Bench) -> None:
        """R13, O4: the limit and how many run."""
        await bench.store.put_limit(at_most(1, "key", "c:*"))
        waits = [await bench.add(limit_key="c:1") for _ in range(2)][1]
        free = await bench.add(limit_key="c:2", delay_us=SECOND)
        await bench.claim(1)
        [full] = await bench.store.full_limits_for(await bench.job(waits))
        assert (full.limit.name, full.name, full.in_use, full.next_at) == ("c:*", "c:1", 1, None)
        assert await bench.store.full_limits_for(await bench.job(free)) == []


@needs(LIMITS)
class LimitUseContract(Contract):
    """A job counts under its limits while it runs, and at no other time (R13)."""

    @pytest.mark.parametrize("move", [Move.COMPLETE, Move.RETRY, Move.FAIL, Move.DEFER, Move.RELEASE, Move.CANCEL])
    async def test_every_end_of_an_attempt_frees_its_limits(self, bench: Bench, move: Move) -> None:
        """R13: however the attempt ends."""
        await bench.store.put_limit(at_most(1))
        first = await bench.running(limit_key="k")
        second = await bench.add(limit_key="k")
        error = BOOM if move in (Move.RETRY, Move.FAIL) else None
        delay_us = SECOND if move in (Move.RETRY, Move.DEFER, Move.RELEASE) else 0
        await bench.settle(first, move, error=error, delay_us=delay_us)
        assert (await bench.claim_one()).id == second

    @needs(WORKFLOWS)
    async def test_a_job_that_sleeps_or_waits_counts_under_no_limit(self, bench: Bench) -> None:
        """R13, C9: suspended jobs free their limits."""
        await bench.store.put_limit(at_most(1))
        first = await bench.running(limit_key="k")
        second = await bench.add(limit_key="k")
        suspension = Suspension(position=0, name="nap", signal="go", until=None)
        await bench.settle(first, Move.SUSPEND, suspension=suspension)
        assert await bench.state(first.id) is State.PENDING
        assert (await bench.claim_one()).id == second

    async def test_jobs_of_a_dead_worker_count_under_limits_until_their_leases_are_over(self, bench: Bench) -> None:
        """R13, live-2, safe-8: not a moment less, and not longer."""
        await bench.store.put_limit(at_most(2))
        await bench.store.register(worker_card("dead"))
        ids = [await bench.add(limit_key="k", max_crashes=1) for _ in range(3)]
        await bench.claim(2, owner="dead")
        await bench.runtime.advance(LEASE / SECOND - 0.001)
        assert await bench.claim(9) == []
        await bench.runtime.advance(0.001)
        claimed = await bench.claimed(9)
        assert {moved.job.id for moved in claimed.moved} == set(ids[:2])
        assert [job.id for job in claimed.jobs] == ids[2:]

    async def test_a_job_that_skips_the_queue_needs_room_under_its_limit(self, bench: Bench) -> None:
        """R13, S7, safe-8: with a full limit it is an ordinary enqueue."""
        await bench.store.put_limit(at_most(1))
        skips = [SkipQueue(owner="me", ticket=number, lease_us=LEASE) for number in (1, 2)]
        answers = await bench.store.submit(
            [Submission(jobs=[new_job(limit_key="k")], skip_queue=skip) for skip in skips]
        )
        first, second = (accepted for answer in answers if isinstance(answer, list) for accepted in answer)
        assert first.leased is not None
        assert (second.leased, second.state) == (None, State.SCHEDULED)
        assert await bench.claim(9) == []
        await bench.settle(first.leased)
        assert [job.id for job in await bench.claim(9)] == [second.id]

    async def test_a_job_that_skipped_the_queue_counts_under_its_limit(self, bench: Bench) -> None:
        """R13, S7."""
        await bench.store.put_limit(at_most(1))
        await bench.submit(new_job(limit_key="k"), skip_queue=SkipQueue(owner="me", ticket=1, lease_us=LEASE))
        await bench.add(limit_key="k")
        assert await bench.claim(9) == []

    @kinds
    async def test_claims_that_race_never_exceed_a_limit(self, bench: Bench, kind: LimitKind, name: str) -> None:
        """R13, safe-8: two who count at the same time, with real threads and a real clock."""
        runtime = SystemRuntime()
        stores = [await bench.opened(runtime) for _ in range(3)]
        await stores[0].put_limit(at_most(3, kind, name))
        await stores[0].submit([Submission(jobs=[new_job(queue="q", limit_key="k") for _ in range(3 * RACES)])])
        for _ in range(RACES):
            jobs = await race(stores)
            assert len(jobs) <= 3, "over the limit"
            jobs += (await stores[0].claim(claim_request(limit=9))).jobs
            assert len(jobs) == 3, "and no place is left"
            for job in jobs:
                await stores[0].settle(job.owner or "", [settlement(job)])


async def race(stores: list[DatabaseStore]) -> list[JobRecord]:
    """Several claims at once on each store."""
    claims = [store.claim(claim_request(owner=f"w{n}", limit=2)) for n in range(3) for store in stores]
    return [job for claimed in await asyncio.gather(*claims) for job in claimed.jobs]
