"""Settlements through leases that are over."""

from __future__ import annotations

import pytest
from msgspec import structs

from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import SETTLING, Move, Status
from ropewalk.domain.time import SECOND
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, settlement

every_move = pytest.mark.parametrize("move", list(SETTLING))
every_failure = pytest.mark.parametrize("move", [Move.FAIL, Move.BURY, Move.EXPIRE])
back_to_waiting = pytest.mark.parametrize("move", [move for move, after in SETTLING.items() if after is Status.WAITING])


class StaleContract(Contract):
    """A settlement through a lease that is over changes nothing and is answered with the reason (safe-5)."""

    @every_move
    async def test_a_settlement_with_another_fence_is_refused(self, bench: Bench, move: Move) -> None:
        job = await bench.running()
        await _refused(bench, structs.replace(job, fence=job.fence + 1), move, LossReason.TAKEN_BY_ANOTHER_WORKER)
        await _refused(bench, structs.replace(job, fence=job.fence - 1), move, LossReason.TAKEN_BY_ANOTHER_WORKER)

    async def test_of_several_settlements_of_one_lease_the_first_counts(self, bench: Bench) -> None:
        """safe-5: in one call, whatever they ask for and whichever would be quicker to write."""
        kept, back, late = [await bench.running() for _ in range(3)]
        asked = [
            settlement(kept, result=b"1"),
            settlement(back, Move.RETRY, error=BOOM, delay_us=SECOND),
            settlement(structs.replace(late, fence=late.fence + 1), result=b"3"),
            settlement(kept, result=b"2"),
            settlement(back, result=b"2"),
            settlement(late, result=b"2"),
        ]
        answers = await bench.settle_all("worker", asked)
        moves = [answer.move for answer in answers]
        assert moves == [Move.COMPLETE, Move.RETRY, None, None, None, Move.COMPLETE]
        assert answers[3].lost is LossReason.ALREADY_COMPLETED
        assert [(await bench.job(job.id)).result for job in (kept, back, late)] == [b"1", None, b"2"]

    @every_move
    async def test_a_settlement_by_another_owner_is_refused(self, bench: Bench, move: Move) -> None:
        job = await bench.running(owner="me")
        await _refused(bench, job, move, LossReason.TAKEN_BY_ANOTHER_WORKER, owner="you")

    @every_move
    async def test_a_settlement_of_a_job_that_is_gone_is_refused(self, bench: Bench, move: Move) -> None:
        job = await bench.running()
        await bench.settle(job)
        await bench.store.delete("default", [job.id])
        await _refused(bench, job, move, LossReason.NOT_FOUND)

    @every_move
    async def test_a_settlement_of_a_lease_given_to_another_worker_is_refused(self, bench: Bench, move: Move) -> None:
        old = await bench.running(owner="old")
        await bench.runtime.advance(60)
        await bench.sweep(1)
        await _refused(bench, old, move, LossReason.TAKEN_BY_ANOTHER_WORKER)
        new = await bench.claim_one(owner="new")
        await _refused(bench, old, move, LossReason.TAKEN_BY_ANOTHER_WORKER)
        assert (await bench.settle(new)).move is Move.COMPLETE

    @every_move
    async def test_a_settlement_by_the_same_owner_with_an_old_fence_is_refused(self, bench: Bench, move: Move) -> None:
        old = await bench.running(owner="me")
        await bench.settle(old, Move.RELEASE)
        await bench.claim_one(owner="me")
        await _refused(bench, old, move, LossReason.TAKEN_BY_ANOTHER_WORKER)

    @pytest.mark.parametrize(
        ("ended", "reason"),
        [
            (Move.COMPLETE, LossReason.ALREADY_COMPLETED),
            (Move.FAIL, LossReason.ALREADY_COMPLETED),
            (Move.BURY, LossReason.ALREADY_COMPLETED),
            (Move.EXPIRE, LossReason.ALREADY_COMPLETED),
            (Move.CANCEL, LossReason.CANCELLED),
            (Move.RETRY, LossReason.TAKEN_BY_ANOTHER_WORKER),
            (Move.DEFER, LossReason.TAKEN_BY_ANOTHER_WORKER),
            (Move.RELEASE, LossReason.TAKEN_BY_ANOTHER_WORKER),
        ],
    )
    async def test_a_second_settlement_of_one_lease_is_refused(
        self, bench: Bench, ended: Move, reason: LossReason
    ) -> None:
        """safe-6: one terminal transition per run."""
        job = await bench.running()
        await bench.settle(job, ended)
        for move in SETTLING:
            await _refused(bench, job, move, reason)

    @pytest.mark.parametrize(
        ("first", "second", "lost"),
        [
            (Move.COMPLETE, Move.COMPLETE, LossReason.ALREADY_COMPLETED),
            (Move.COMPLETE, Move.FAIL, LossReason.ALREADY_COMPLETED),
            (Move.FAIL, Move.COMPLETE, LossReason.ALREADY_COMPLETED),
            (Move.RETRY, Move.COMPLETE, LossReason.TAKEN_BY_ANOTHER_WORKER),
        ],
    )
    async def test_a_second_settlement_of_one_lease_in_one_batch_is_refused(
        self, bench: Bench, first: Move, second: Move, lost: LossReason
    ) -> None:
        """safe-6: the first counts, whichever way a store takes it."""
        job = await bench.running(owner="me")
        asked = [settlement(job, first, error=BOOM), settlement(job, second, error=BOOM)]
        answers = await bench.settle_all("me", asked)
        assert [(answer.move, answer.lost) for answer in answers] == [(first, None), (None, lost)]
        assert await bench.status(job.id) is SETTLING[first]

    async def test_an_expired_lease_nobody_took_back_still_settles(self, bench: Bench) -> None:
        """safe-5: until somebody takes the lease back, a completion under it wins."""
        job = await bench.running()
        await bench.runtime.advance(hours=1)
        assert (await bench.settle(job)).move is Move.COMPLETE


async def _refused(bench: Bench, job: JobRecord, move: Move, reason: LossReason, *, owner: str | None = None) -> None:
    before = await bench.store.history("default", job.id)
    answer = await bench.settle(job, move, owner=owner, result=b"stale", error=BOOM)
    assert (answer.seq, answer.fence, answer.lost) == (job.seq, job.fence, reason)
    assert (answer.job, answer.move) == (None, None)
    assert await bench.store.history("default", job.id) == before
