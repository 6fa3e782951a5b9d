"""Reading jobs, queues and workers."""

from __future__ import annotations

from ropewalk.domain.jobs.operations import UpdateRequest
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.search import Filter
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.ports.store.capabilities import DIAGNOSIS
from ropewalk.ports.store.leases import Renewal
from ropewalk.ports.store.reading import QueueInfo
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import LEASE, new_job, worker_card

LIVE = (State.PENDING, State.DELAYED, State.RETRYING, State.SCHEDULED, State.RUNNING)


class GetContract(Contract):
    """Jobs are read by their ids, whatever their state (O2)."""

    async def test_a_get_returns_the_jobs_that_exist_and_nothing_else(self, bench: Bench) -> None:
        """O2: live and finished alike."""
        done = await bench.finished()
        waiting = await bench.add()
        snapshot = await bench.store.get("default", [waiting, "missing", done.id, waiting])
        assert set(snapshot.jobs) == {waiting, done.id}
        assert snapshot.jobs[done.id] == done
        assert snapshot.now == bench.runtime.now()
        assert (await bench.store.get("default", [])).jobs == {}

    async def test_many_jobs_are_read_at_once(self, bench: Bench) -> None:
        await bench.submit(*(new_job(id=f"id-{number}") for number in range(3_000)))
        wanted = [f"id-{number}" for number in range(0, 3_000, 2)]
        assert list((await bench.store.get("default", wanted)).jobs) == wanted

    async def test_a_finished_call_is_seen_by_every_later_read(self, bench: Bench) -> None:
        """Through another store on the same data too."""
        other = await bench.second()
        job_id = await bench.add()
        assert await other.state(job_id) is State.SCHEDULED
        await bench.settle(await bench.claim_one())
        assert await other.state(job_id) is State.COMPLETED
        assert await other.store.count("default", Filter(states=(State.COMPLETED,))) == 1

    async def test_the_clock_of_the_store_can_be_read(self, bench: Bench) -> None:
        before = await bench.store.clock()
        await bench.runtime.advance(5)
        assert (await bench.store.clock()) - before == 5 * SECOND


class QueuesContract(Contract):
    """The list of queues names every queue that has live jobs or is paused, with counts by state (O4, R19)."""

    async def test_live_jobs_are_counted_by_state(self, bench: Bench) -> None:
        start = bench.runtime.now()
        await bench.running(queue="mail")
        retrying = await bench.running(queue="mail")
        await bench.settle(retrying, Move.RETRY, delay_us=HOUR)
        await bench.add(queue="mail", delay_us=HOUR)
        await bench.add("a", queue="mail")
        await bench.runtime.advance(1)
        await bench.add("b", queue="mail", priority=100)
        await bench.finished(queue="old")
        await bench.add(queue="foreign", tenant="acme")
        await bench.store.pause("default", "empty", paused=True)
        await bench.store.pause("acme", "hidden", paused=True)
        counts = {State.RUNNING: 1, State.RETRYING: 1, State.DELAYED: 1, State.SCHEDULED: 2}
        assert [_without_zeros(each) for each in await bench.store.queues("default")] == [
            QueueInfo(name="empty", paused=True, counts={}, oldest_ready_at=None),
            QueueInfo(name="mail", paused=False, counts=counts, oldest_ready_at=start),
        ]

    async def test_counted_states_follow_the_clock(self, bench: Bench) -> None:
        await bench.running("a")
        await bench.add(delay_us=SECOND)
        [queue] = await bench.store.queues("default")
        assert _without_zeros(queue).counts == {State.RUNNING: 1, State.DELAYED: 1}
        assert queue.oldest_ready_at is None
        await bench.runtime.advance(1)
        [queue] = await bench.store.queues("default")
        assert _without_zeros(queue).counts == {State.RUNNING: 1, State.SCHEDULED: 1}
        assert queue.oldest_ready_at == bench.runtime.now()

    async def test_updated_and_cancelled_jobs_are_counted_once_or_not_at_all(self, bench: Bench) -> None:
        updated, cancelled = await bench.add(), await bench.add()
        for priority in range(5):
            await bench.store.update("default", updated, UpdateRequest(priority=priority))
        await bench.store.cancel("default", [cancelled], reason=None, force=False)
        [queue] = await bench.store.queues("default")
        assert _without_zeros(queue).counts == {State.SCHEDULED: 1}


@needs(DIAGNOSIS)
class AheadContract(Contract):
    """A store counts how many ready jobs of the same line come before a job (O9)."""

    async def test_ready_jobs_ahead_are_counted_in_the_order_of_the_line(self, bench: Bench) -> None:
        await bench.add("a")
        await bench.add("b", priority=-50)
        await bench.add(priority=10, delay_us=HOUR)
        await bench.add(queue="other", priority=10)
        await bench.add(tenant="acme", priority=10)
        await bench.running("undo")
        job = await bench.job(await bench.add())
        await bench.add()
        assert await bench.store.ahead_of(job) == 1
        await bench.add(priority=1)
        assert await bench.store.ahead_of(job) == 2

    async def test_jobs_ahead_are_counted_up_to_ten_thousand(self, bench: Bench) -> None:
        await bench.submit(*(new_job(id=f"id-{number}") for number in range(10_002)))
        last = await bench.job("id-10001")
        assert await bench.store.ahead_of(last) == 10_000
        assert await bench.store.ahead_of(await bench.job("id-9999")) == 9_999


class WorkersContract(Contract):
    """Other processes see the workers that have started, and can ask them to drain (R1)."""

    async def test_a_worker_is_registered_replaced_and_unregistered(self, bench: Bench) -> None:
        start = bench.runtime.now()
        await bench.store.register(worker_card("one", queues=("mail",), tenants=("acme",), started_at=1, beat_at=2))
        await bench.runtime.advance(5)
        await bench.store.register(worker_card("two", types=(), lease_us=7))
        await bench.store.register(worker_card("one", concurrency=99))
        cards = {card.id: card for card in await bench.store.workers()}
        now = bench.runtime.now()
        assert cards == {
            "one": worker_card("one", concurrency=99, started_at=start, beat_at=now),
            "two": worker_card("two", types=(), lease_us=7, started_at=now, beat_at=now),
        }
        await bench.store.unregister("one")
        await bench.store.unregister("nobody")
        assert [card.id for card in await bench.store.workers()] == ["two"]

    async def test_leases_of_an_unregistered_worker_run_out(self, bench: Bench) -> None:
        await bench.store.register(worker_card("w"))
        job = await bench.running(owner="w")
        await bench.store.unregister("w")
        assert await bench.state(job.id) is State.RUNNING
        assert (await bench.settle(job)).move is Move.COMPLETE

    async def test_a_card_counts_what_its_worker_holds(self, bench: Bench) -> None:
        """R19."""
        for owner in ("one", "two"):
            await bench.store.register(worker_card(owner))
        jobs = [await bench.running(owner="one") for _ in range(2)]
        await bench.running(owner="nobody")
        assert {card.id: card.held for card in await bench.store.workers()} == {"one": 2, "two": 0}
        await bench.settle(jobs[0])
        assert {card.id: card.held for card in await bench.store.workers()} == {"one": 1, "two": 0}

    async def test_a_worker_is_told_to_drain(self, bench: Bench) -> None:
        """R19: by every renewal from then on, with leases or without; the others hear nothing of it."""
        for owner in ("one", "two"):
            await bench.store.register(worker_card(owner))
        assert not (await bench.store.renew("one", [])).drain
        assert await bench.store.drain("one")
        assert {card.id: card.draining for card in await bench.store.workers()} == {"one": True, "two": False}
        for _ in range(2):
            assert (await bench.store.renew("one", [])).drain
        assert not (await bench.store.renew("two", [])).drain
        assert await bench.store.drain("one"), "telling it again is harmless"

    async def test_a_drain_is_for_one_start_of_a_worker_and_for_all_of_it(self, bench: Bench) -> None:
        """R19: no new card undoes it, and a worker that never was, or is gone, is not told."""
        await bench.store.register(worker_card("one"))
        assert await bench.store.drain("one")
        await bench.store.register(worker_card("one", concurrency=99))
        assert (await bench.store.renew("one", [])).drain
        await bench.store.unregister("one")
        assert not await bench.store.drain("one")
        assert not (await bench.store.renew("one", [])).drain
        await bench.store.register(worker_card("next"))
        assert not (await bench.store.renew("next", [])).drain

    async def test_what_a_draining_worker_holds_stays_its_own(self, bench: Bench) -> None:
        """R11, safe-5: it goes on renewing and settles as ever."""
        await bench.store.register(worker_card("one"))
        job = await bench.running(owner="one")
        await bench.store.drain("one")
        renewed = await bench.store.renew("one", [Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE)])
        assert (renewed.lost, renewed.drain) == ([], True)
        assert (await bench.settle(job)).move is Move.COMPLETE


def _without_zeros(queue: QueueInfo) -> QueueInfo:
    """A state without jobs may be counted as 0 or left out. No other state may appear."""
    assert set(queue.counts) <= set(LIVE)
    counts = {state: number for state, number in queue.counts.items() if number}
    return QueueInfo(name=queue.name, paused=queue.paused, counts=counts, oldest_ready_at=queue.oldest_ready_at)
