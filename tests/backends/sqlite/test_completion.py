"""The short cut for plain completions answers like the long way."""

from __future__ import annotations

from ropewalk.backends.sqlite import SqliteStore
from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.record import IdempotencyKey, JobRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.ports.store.leases import Settled
from ropewalk.testing.contract.builders import claim_request, settlement
from tests.backends.sqlite.conftest import plain, submit

BOOM = ErrorInfo(category=Category.TEMPORARY, message="boom")


async def leased(store: SqliteStore, count: int) -> list[JobRecord]:
    await submit(store, *(plain(f"job-{number}") for number in range(count)))
    return (await store.claim(claim_request(limit=count))).jobs


async def test_a_batch_of_every_kind_is_answered_in_order(store: SqliteStore) -> None:
    jobs = await leased(store, 300)
    await submit(store, plain("keyed", key=IdempotencyKey(key="k")))
    [keyed] = (await store.claim(claim_request(limit=1, first_ticket=301))).jobs
    stale = settlement(jobs[7])
    await store.settle("worker", [stale])
    asked = [settlement(job, Move.RETRY if job.seq % 3 == 0 else Move.COMPLETE, error=None) for job in [*jobs, keyed]]
    answers = (await store.settle("worker", asked)).settled
    assert [(answer.seq, answer.fence) for answer in answers] == [(each.seq, each.fence) for each in asked]
    assert answers[7] == Settled(seq=stale.seq, fence=stale.fence, lost=LossReason.ALREADY_COMPLETED)
    for each, answer in zip(asked, answers, strict=True):
        assert answer.seq == stale.seq or answer.move is each.move
