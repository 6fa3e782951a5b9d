"""Pruning after the retention, keys of `once`, and workers that are forgotten."""

from __future__ import annotations

import pytest
from msgspec import structs

from ropewalk.domain.jobs.flags import FORGOTTEN
from ropewalk.domain.jobs.operations import RetryRequest
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.retention import Retention
from ropewalk.domain.time import DAY, HOUR, MINUTE
from ropewalk.ports.store.maintenance import Pruned
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, keyed, worker_card

ENDS = {
    Move.COMPLETE: "completed_us",
    Move.FAIL: "failed_us",
    Move.BURY: "dead_letter_us",
    Move.CANCEL: "cancelled_us",
}
FOR_EVER = Retention(completed_us=None, failed_us=None, dead_letter_us=None, cancelled_us=None)
NOTHING = Pruned(jobs=0, results=0, keys=0)


class PruneContract(Contract):
    """A prune removes jobs and results after their retention, in bounded steps (B5, live-8)."""

    @pytest.mark.parametrize("move", list(ENDS))
    async def test_each_final_state_has_its_own_retention(self, bench: Bench, move: Move) -> None:
        ids = {end: (await bench.finished(end)).id for end in ENDS}
        spans = dict.fromkeys(ENDS.values(), 2 * HOUR) | {ENDS[move]: HOUR}
        retention = structs.replace(FOR_EVER, **spans)
        await bench.runtime.advance(3599.999_999)
        assert await bench.store.prune(retention, 9) == NOTHING
        await bench.runtime.advance(0.000_001)
        assert await bench.store.prune(retention, 9) == Pruned(jobs=1, results=0, keys=0)
        pruned = ids.pop(move)
        assert await bench.find(pruned) is None
        assert await bench.store.history("default", pruned) is None
        assert len((await bench.store.get("default", list(ids.values()))).jobs) == len(ENDS) - 1

    async def test_a_retention_of_none_keeps_jobs_for_ever(self, bench: Bench) -> None:
        for end in ENDS:
            await bench.finished(end)
        await bench.runtime.advance(days=10_000)
        assert await bench.store.prune(FOR_EVER, 9) == NOTHING

    async def test_a_type_may_have_its_own_retention(self, bench: Bench) -> None:
        short = await bench.finished(type="a")
        long = await bench.finished(Move.FAIL, type="b")
        plain = await bench.finished(type="t")
        retention = Retention(completed_us=HOUR, failed_us=HOUR, types={"a": MINUTE, "b": None})
        await bench.runtime.advance(60)
        assert (await bench.store.prune(retention, 9)).jobs == 1
        assert await bench.find(short.id) is None
        await bench.runtime.advance(days=99)
        assert (await bench.store.prune(retention, 9)).jobs == 1
        assert await bench.find(plain.id) is None
        assert await bench.find(long.id) is not None

    async def test_a_prune_removes_no_more_jobs_than_its_limit(self, bench: Bench) -> None:
        for number in range(7):
            await bench.finished(list(ENDS)[number % 4], type=("a", "b")[number % 2])
        await bench.runtime.advance(days=99)
        assert [(await bench.store.prune(Retention(), 3)).jobs for _ in range(4)] == [3, 3, 1, 0]

    async def test_live_jobs_are_never_pruned(self, bench: Bench) -> None:
        """safe-2: an acknowledged job is there until it is terminal and past retention."""
        waiting = await bench.add()
        running = await bench.running("a")
        delayed = await bench.add(delay_us=1000 * DAY)
        await bench.runtime.advance(days=365)
        zero = Retention(completed_us=0, failed_us=0, dead_letter_us=0, cancelled_us=0)
        assert await bench.store.prune(zero, 9) == NOTHING
        assert len((await bench.store.get("default", [waiting, running.id, delayed])).jobs) == 3

    async def test_a_retried_job_counts_from_its_new_end(self, bench: Bench) -> None:
        done = await bench.finished(Move.FAIL)
        await bench.runtime.advance(days=40)
        await bench.store.retry("default", [done.id], RetryRequest())
        assert (await bench.store.prune(Retention(), 9)).jobs == 0
        await bench.settle(await bench.claim_one(), Move.FAIL)
        assert (await bench.store.prune(Retention(), 9)).jobs == 0
        await bench.runtime.advance(days=30)
        assert (await bench.store.prune(Retention(), 9)).jobs == 1

    async def test_attempts_and_events_go_with_their_job(self, bench: Bench) -> None:
        job = await bench.running(id="again")
        await bench.store.cancel("default", [job.id], reason=None, force=False)
        await bench.settle(job, Move.FAIL, error=BOOM)
        await bench.runtime.advance(days=99)
        assert (await bench.store.prune(Retention(), 9)).jobs == 1
        await bench.add(id="again")
        trail = await bench.stored_history("again")
        assert (trail.attempts, trail.events) == ([], [])

    async def test_results_may_be_pruned_before_their_jobs(self, bench: Bench) -> None:
        """The job itself stays, with its history."""
        job = await bench.running()
        await bench.settle(job, result=b"[1]")
        failed = await bench.finished(Move.FAIL)
        done = await bench.job(job.id)
        retention = Retention(results_us=HOUR)
        await bench.runtime.advance(3599.999_999)
        assert await bench.store.prune(retention, 9) == NOTHING
        await bench.runtime.advance(0.000_001)
        assert await bench.store.prune(retention, 9) == Pruned(jobs=0, results=1, keys=0)
        assert await bench.store.prune(retention, 9) == NOTHING
        after = await bench.job(job.id)
        assert (after.result, after.rev, after.status) == (None, done.rev, done.status)
        assert after.flags & FORGOTTEN, "a result that is gone is told from one that never was"
        assert not done.flags & FORGOTTEN
        assert await bench.job(failed.id) == failed

    async def test_a_prune_removes_no_more_results_than_its_limit(self, bench: Bench) -> None:
        for _ in range(5):
            await bench.settle(await bench.running(), result=b"[1]")
        await bench.runtime.advance(hours=1)
        retention = Retention(results_us=HOUR)
        assert [(await bench.store.prune(retention, 2)).results for _ in range(4)] == [2, 2, 1, 0]


class PruneKeysContract(Contract):
    """An idempotency key is remembered for the longest window that anybody asked for (S4)."""

    async def test_a_closed_key_is_forgotten_after_its_window(self, bench: Bench) -> None:
        await bench.submit(keyed("k", window=3600))
        await bench.settle(await bench.claim_one())
        await bench.runtime.advance(3599.999_999)
        assert await bench.store.prune(Retention(), 9) == NOTHING
        await bench.runtime.advance(0.000_001)
        assert await bench.store.prune(Retention(), 9) == Pruned(jobs=0, results=0, keys=1)
        [fresh] = await bench.submit(keyed("k", scope="any", window=86_400))
        assert not fresh.duplicate

    async def test_an_open_key_is_kept_however_old_it_is(self, bench: Bench) -> None:
        await bench.submit(keyed("k", window=1))
        await bench.runtime.advance(days=9)
        assert await bench.store.prune(Retention(), 9) == NOTHING
        [again] = await bench.submit(keyed("k"))
        assert again.duplicate

    async def test_a_repetition_may_ask_for_a_longer_window(self, bench: Bench) -> None:
        await bench.submit(keyed("k", window=60))
        await bench.submit(keyed("k", window=3600))
        await bench.settle(await bench.claim_one())
        await bench.runtime.advance(minutes=59)
        assert (await bench.store.prune(Retention(), 9)).keys == 0
        [again] = await bench.submit(keyed("k", scope="any", window=3600))
        assert again.duplicate
        await bench.runtime.advance(minutes=1)
        assert (await bench.store.prune(Retention(), 9)).keys == 1

    async def test_a_job_stays_as_long_as_its_key_may_answer_with_it(self, bench: Bench) -> None:
        """However short the retention: the window is a promise too."""
        [first] = await bench.submit(keyed("k", window=3600))
        await bench.settle(await bench.claim_one())
        await bench.runtime.advance(minutes=30)
        zero = Retention(completed_us=0)
        assert await bench.store.prune(zero, 9) == NOTHING
        [again] = await bench.submit(keyed("k", scope="any", window=3600))
        assert (again.duplicate, again.id, again.state) == (True, first.id, State.COMPLETED)
        await bench.runtime.advance(minutes=30)
        pruned = await bench.store.prune(zero, 9)
        assert pruned.jobs == 1
        assert await bench.find(first.id) is None
        [fresh] = await bench.submit(keyed("k", scope="any", window=86_400))
        assert not fresh.duplicate

    async def test_a_retried_job_whose_key_was_forgotten_holds_it_again(self, bench: Bench) -> None:
        """safe-12: opened anew, at the time of its request."""
        [first] = await bench.submit(keyed("k", window=60))
        await bench.settle(await bench.claim_one(), Move.FAIL)
        await bench.runtime.advance(minutes=2)
        assert (await bench.store.prune(Retention(), 9)).keys == 1
        await bench.store.retry("default", [first.id], RetryRequest())
        [again] = await bench.submit(keyed("k"))
        assert (again.duplicate, again.id) == (True, first.id)
        await bench.settle(await bench.claim_one())
        await bench.runtime.advance(59)
        [within] = await bench.submit(keyed("k", scope="any", window=60))
        assert (within.duplicate, within.id) == (True, first.id)
        await bench.runtime.advance(1)
        [after] = await bench.submit(keyed("k", scope="any", window=60))
        assert not after.duplicate

    async def test_a_prune_removes_no_more_keys_than_its_limit(self, bench: Bench) -> None:
        for number in range(5):
            await bench.submit(keyed(f"k{number}", window=60))
            await bench.settle(await bench.claim_one())
        await bench.runtime.advance(hours=1)
        assert [(await bench.store.prune(Retention(), 2)).keys for _ in range(4)] == [2, 2, 1, 0]


class OnceContract(Contract):
    """`once` answers True to one caller of a key until the key expires (C9)."""

    async def test_only_one_caller_is_the_first_until_the_key_expires(self, bench: Bench) -> None:
        other = await bench.second()
        assert await bench.store.once("default", "k", HOUR)
        assert not await bench.store.once("default", "k", HOUR)
        assert not await other.store.once("default", "k", HOUR)
        assert await bench.store.once("default", "l", HOUR)
        await bench.runtime.advance(3599.999_999)
        assert not await bench.store.once("default", "k", HOUR), "asking does not prolong it"
        await bench.runtime.advance(0.000_001)
        assert await other.store.once("default", "k", HOUR)
        assert not await bench.store.once("default", "k", HOUR)

    async def test_a_prune_forgets_only_once_keys_that_have_expired(self, bench: Bench) -> None:
        await bench.store.once("default", "short", MINUTE)
        await bench.store.once("default", "long", HOUR)
        await bench.runtime.advance(minutes=1)
        await bench.store.prune(Retention(), 9)
        assert not await bench.store.once("default", "long", HOUR)
        assert await bench.store.once("default", "short", HOUR)


class SilentWorkersContract(Contract):
    """A worker without a sign of life for a day is forgotten (R1)."""

    async def test_a_worker_is_forgotten_after_a_day_without_a_sign_of_life(self, bench: Bench) -> None:
        await bench.store.register(worker_card("silent"))
        await bench.store.register(worker_card("alive"))
        await bench.runtime.advance(hours=23, minutes=59)
        await bench.store.renew("alive", [])
        await bench.store.prune(Retention(), 9)
        assert len(await bench.store.workers()) == 2
        await bench.runtime.advance(minutes=1)
        await bench.store.prune(Retention(), 9)
        assert [card.id for card in await bench.store.workers()] == ["alive"]
