"""Claims whose answer never reached the worker."""

from __future__ import annotations

from ropewalk.domain.jobs.lease import TicketRange
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.time import SECOND
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import LEASE, worker_card


class LostAnswerContract(Contract):
    """A job whose lease nobody learned of, because the answer of the claim was lost, loses neither an attempt nor a
    crash (safe-7).
    """

    async def test_leases_of_a_lost_answer_are_given_back_with_the_next_claim(self, bench: Bench) -> None:
        ids, _ = await _lost(bench, 3)
        claimed = await bench.claimed(0, first_ticket=4, unanswered=(TicketRange(1, 3),))
        assert [(moved.job.id, moved.move) for moved in claimed.moved] == [(each, Move.RELEASE) for each in ids]
        for each in ids:
            job = await bench.job(each)
            assert (job.status, job.attempt, job.crashes, job.owner) == (Status.WAITING, 0, 0, None)

    async def test_the_same_claim_may_lease_them_again(self, bench: Bench) -> None:
        """They keep their place in line."""
        ids, lost = await _lost(bench, 2)
        await bench.add()
        again = await bench.claim(2, first_ticket=3, unanswered=(TicketRange(1, 2),))
        assert [(job.id, job.ticket, job.attempt) for job in again] == [(ids[0], 3, 1), (ids[1], 4, 1)]
        assert [job.fence for job in again] == [job.fence + 1 for job in lost]

    async def test_other_tickets_and_other_workers_keep_theirs(self, bench: Bench) -> None:
        mine = [await bench.running(owner="worker", max_attempts=1) for _ in range(1)]
        await bench.add(max_attempts=1)
        mine += await bench.claim(first_ticket=2)
        await bench.add(max_attempts=1)
        foreign = await bench.claim_one(owner="another", first_ticket=1)
        await bench.claim(0, first_ticket=3, unanswered=(TicketRange(1, 1), TicketRange(3, 9)))
        assert await bench.status(mine[0].id) is Status.WAITING
        for job in (mine[1], foreign):
            assert (await bench.settle(job)).move is Move.COMPLETE

    async def test_a_job_that_was_settled_meanwhile_is_left_alone(self, bench: Bench) -> None:
        _, [done, _] = await _lost(bench, 2)
        await bench.settle(done)
        claimed = await bench.claimed(0, first_ticket=3, unanswered=(TicketRange(1, 2),))
        assert len(claimed.moved) == 1
        assert await bench.status(done.id) is Status.COMPLETED

    async def test_a_job_that_was_cancelled_meanwhile_ends_as_cancelled(self, bench: Bench) -> None:
        [job_id], _ = await _lost(bench, 1)
        await bench.cancel(job_id)
        await bench.claim(0, first_ticket=2, unanswered=(TicketRange(1, 1),))
        assert await bench.status(job_id) is Status.CANCELLED

    async def test_tickets_of_a_lost_answer_never_count_as_started(self, bench: Bench) -> None:
        """The claim may take effect after its worker told the store that it got no answer."""
        await bench.store.register(worker_card())
        await bench.claim(0, first_ticket=3, started_upto=4, turn=2, unanswered=(TicketRange(1, 2),))
        ids, _ = await _lost(bench, 2, turn=1)
        await bench.claim(0, first_ticket=9, started_upto=9, turn=3)
        await bench.runtime.advance(LEASE / SECOND)
        assert {moved.move for moved in await bench.sweep()} == {Move.RELEASE}
        assert [(await bench.job(each)).attempt for each in ids] == [0, 0]

    async def test_each_claim_adds_to_the_unanswered_tickets_that_are_known(self, bench: Bench) -> None:
        await bench.store.register(worker_card())
        ids, _ = await _lost(bench, 3)
        for turn, ticket in enumerate((3, 1), 2):
            await bench.claim(0, first_ticket=4, turn=turn, unanswered=(TicketRange(90 + ticket, 90 + ticket),))
        again = await bench.claim(3, first_ticket=91, started_upto=93, turn=4, unanswered=(TicketRange(1, 3),))
        assert [job.id for job in again] == ids
        await bench.runtime.advance(LEASE / SECOND)
        moves = {moved.job.id: moved.move for moved in await bench.sweep()}
        assert moves == dict(zip(ids, (Move.RELEASE, Move.BURY, Move.RELEASE), strict=True))

    async def test_a_claim_that_arrives_late_changes_nothing_about_what_has_started(self, bench: Bench) -> None:
        """safe-7: what a later claim told as started stays so."""
        await bench.store.register(worker_card())
        ids, _ = await _lost(bench, 2, started_upto=0, turn=1)
        await bench.claim(0, first_ticket=3, started_upto=2, turn=5)
        await bench.claim(0, first_ticket=3, started_upto=1, unstarted=(1,), turn=4)
        await bench.runtime.advance(LEASE / SECOND)
        assert {moved.job.id: moved.move for moved in await bench.sweep()} == dict.fromkeys(ids, Move.BURY)


async def _lost(bench: Bench, number: int, **how: object) -> tuple[list[str], list[JobRecord]]:
    """Jobs on their only attempt that were leased, and counted as started, by a claim nobody heard of."""
    ids = [await bench.add(max_attempts=1) for _ in range(number)]
    jobs = await bench.claim(number, **how)
    assert [job.id for job in jobs] == ids
    return ids, jobs
