"""Calls that race: on one event loop, on two stores with the same data, and in several threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.operations import CancelStatus
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.submission import Accepted, Submission
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import claim_request, keyed, new_job, settlement

T = TypeVar("T")
U = TypeVar("U")

ROUNDS: Final = 20
THREADS: Final = 4
OVER_WITHIN_SECONDS: Final = 60.0


class RaceContract(Contract):
    """Of two calls that exclude each other exactly one takes effect (safe-4, safe-13)."""

    async def test_every_job_is_claimed_exactly_once(self, bench: Bench) -> None:
        benches = [bench, await bench.second()]
        ids = [accepted.id for accepted in await bench.submit(*(new_job() for _ in range(200)))]
        batches = await asyncio.gather(*(each.claim(7, owner=f"w{n}") for n in range(20) for each in benches))
        claimed = [job.id for batch in batches for job in batch]
        assert sorted(claimed) == sorted(ids)

    async def test_a_claim_and_a_cancellation_exclude_each_other(self, bench: Bench) -> None:
        other = await bench.second()
        for turn in range(ROUNDS):
            job_id = await bench.add()
            claimed, answer = await _together(
                turn,
                bench.claim(),
                other.cancel(job_id),
            )
            if claimed:
                assert answer[0].status is CancelStatus.CANCEL_REQUESTED
                assert (await bench.settle(claimed[0], Move.RETRY)).move is Move.CANCEL
            else:
                assert answer[0].status is CancelStatus.CANCELLED
            assert await bench.status(job_id) is Status.CANCELLED

    async def test_a_completion_and_a_cancellation_exclude_each_other(self, bench: Bench) -> None:
        other = await bench.second()
        for turn in range(ROUNDS):
            job = await bench.running()
            settled, answer = await _together(
                turn,
                bench.settle(job),
                other.cancel(job.id, force=True),
            )
            assert settled.move is Move.COMPLETE
            assert answer[0].status in (CancelStatus.CANCEL_REQUESTED, CancelStatus.ALREADY_COMPLETE)
            assert await bench.status(job.id) is Status.COMPLETED

    async def test_a_settlement_and_a_sweep_exclude_each_other(self, bench: Bench) -> None:
        """safe-6: the decision and the write are one."""
        other = await bench.second()
        for turn in range(ROUNDS):
            job = await bench.running()
            await bench.runtime.advance(60)
            settled, moved = await _together(turn, bench.settle(job), other.sweep(9))
            if settled.lost is None:
                assert moved == []
                assert await bench.status(job.id) is Status.COMPLETED
            else:
                assert settled.lost is LossReason.TAKEN_BY_ANOTHER_WORKER
                assert [each.move for each in moved] == [Move.LOSE]
                assert (await bench.settle(await bench.claim_one())).lost is None

    async def test_of_two_settlements_that_race_one_is_accepted(self, bench: Bench) -> None:
        other = await bench.second()
        for turn in range(ROUNDS):
            job = await bench.running()
            answers = await _together(
                turn,
                bench.settle(job, result=b"1"),
                other.settle(job, Move.FAIL),
            )
            [won] = [answer for answer in answers if answer.lost is None]
            assert (await bench.job(job.id)).last_move is won.move

    async def test_of_many_callers_of_once_one_is_the_first(self, bench: Bench) -> None:
        """C9."""
        benches = [bench, await bench.second()] * 10
        for turn in range(ROUNDS):
            answers = await asyncio.gather(*(each.store.once("default", f"k{turn}", 10**6) for each in benches))
            assert sum(answers) == 1

    async def test_many_callers_with_one_id_get_one_job(self, bench: Bench) -> None:
        """safe-17."""
        benches = [bench, await bench.second()] * 10
        answers = await asyncio.gather(*(each.submit(new_job(id="same")) for each in benches))
        assert sum(not accepted.duplicate for [accepted] in answers) == 1


class ThreadContract(Contract):
    """A store is thread-safe and can be used from any event loop (safe-4)."""

    async def test_stores_in_several_threads_share_the_work(self, bench: Bench) -> None:
        """safe-4: each thread opens its own store, as a process would."""
        ids = [accepted.id for accepted in await bench.submit(*(new_job() for _ in range(120)))]

        async def work(number: int) -> list[str]:
            own = await bench.second()
            return await _work_off(own.store, f"thread-{number}")

        done = [each for batch in await in_threads(work) for each in batch]
        assert sorted(done) == sorted(ids)

    async def test_one_key_used_by_several_threads_makes_one_job(self, bench: Bench) -> None:
        """safe-12: uniqueness is decided in the inserting transaction."""

        async def work(_: int) -> list[Accepted]:
            own = await bench.second()
            return [accepted for number in range(ROUNDS) for accepted in await own.submit(keyed(f"k{number}"))]

        answers = [each for batch in await in_threads(work) for each in batch]
        assert len([each.id for each in answers if not each.duplicate]) == ROUNDS
        assert len({each.id for each in answers}) == ROUNDS

    async def test_one_store_serves_several_event_loops(self, bench: Bench) -> None:
        """safe-4: with real threads and a real clock."""
        store = await bench.backend.open(SystemRuntime())
        ids = [f"id-{number}" for number in range(120)]
        await store.submit([Submission(jobs=[new_job(id=each)]) for each in ids])

        async def work(number: int) -> list[str]:
            return await _work_off(store, f"thread-{number}")

        done = [each for batch in await in_threads(work) for each in batch]
        assert sorted(done) == sorted(ids)


async def _work_off(store: Store, owner: str) -> list[str]:
    """Claim and settle until nothing is ready; what this worker completed."""
    done: list[str] = []
    while jobs := (await store.claim(claim_request(owner=owner, limit=5))).jobs:
        answers = await store.settle(owner, [settlement(job) for job in jobs])
        done += [job.id for job, answer in zip(jobs, answers.settled, strict=True) if answer.lost is None]
    return done


async def _together(turn: int, first: Awaitable[T], second: Awaitable[U]) -> tuple[T, U]:
    """Both at once; every other turn the second gets ahead."""
    if turn % 2:
        late, early = await asyncio.gather(second, first)
        return early, late
    return await asyncio.gather(first, second)


async def in_threads(work: Callable[[int], Coroutine[Any, Any, T]]) -> list[T]:
    """Run `work` in several threads at once, each on a loop of its own."""
    start = threading.Barrier(THREADS)

    def main(number: int) -> T:
        start.wait(OVER_WITHIN_SECONDS)
        return asyncio.run(work(number))

    async with asyncio.timeout(OVER_WITHIN_SECONDS):
        with ThreadPoolExecutor(THREADS) as threads:
            loop = asyncio.get_running_loop()
            return await asyncio.gather(*(loop.run_in_executor(threads, main, number) for number in range(THREADS)))
