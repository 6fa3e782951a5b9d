"""Submitting a job that its submitter leases at once."""

from __future__ import annotations

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.submission import Accepted, SkipQueue
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import LEASE, new_job


class SkipQueueContract(Contract):
    """A job may be inserted with a lease, if nothing holds it back (S7)."""

    SKIP = SkipQueue(owner="me", ticket=4, lease_us=LEASE)

    async def test_a_job_that_skips_the_queue_comes_back_leased(self, bench: Bench) -> None:
        [accepted] = await bench.submit(new_job(), skip_queue=self.SKIP)
        leased = _leased(accepted)
        assert accepted.state is State.RUNNING
        assert (leased.owner, leased.ticket, leased.attempt, leased.last_move) == ("me", 4, 1, Move.CLAIM)
        assert leased.fence == 1
        assert leased.lease_expires_at == bench.runtime.now() + LEASE
        assert await bench.job(leased.id) == leased
        assert await bench.claim() == []
        assert (await bench.settle(leased)).move is Move.COMPLETE

    async def test_the_lease_of_the_job_wins_over_that_of_the_caller(self, bench: Bench) -> None:
        [accepted] = await bench.submit(new_job(lease_us=99 * SECOND), skip_queue=self.SKIP)
        assert _leased(accepted).lease_expires_at == bench.runtime.now() + 99 * SECOND

    async def test_a_delayed_job_waits_like_any_other(self, bench: Bench) -> None:
        """safe-8."""
        [accepted] = await bench.submit(new_job(delay_us=SECOND), skip_queue=self.SKIP)
        assert (accepted.leased, accepted.state) == (None, State.DELAYED)

    async def test_a_paused_queue_is_not_skipped(self, bench: Bench) -> None:
        """safe-8."""
        await bench.store.pause("default", "default", paused=True)
        [accepted] = await bench.submit(new_job(), skip_queue=self.SKIP)
        assert (accepted.leased, accepted.state) == (None, State.SCHEDULED)

    async def test_a_passed_deadline_is_not_started(self, bench: Bench) -> None:
        """R7."""
        [accepted] = await bench.submit(new_job(deadline=bench.runtime.now()), skip_queue=self.SKIP)
        assert accepted.leased is None
        [moved] = await bench.sweep(10)
        assert (moved.job.id, moved.move) == (accepted.id, Move.EXPIRE)

    async def test_a_duplicate_is_never_leased(self, bench: Bench) -> None:
        """safe-4: somebody else may hold it."""
        new = new_job()
        await bench.submit(new)
        [again] = await bench.submit(new, skip_queue=self.SKIP)
        assert (again.duplicate, again.leased) == (True, None)
        [job] = await bench.claim(owner="other")
        [held] = await bench.submit(new, skip_queue=self.SKIP)
        assert (held.duplicate, held.leased, held.state) == (True, None, State.RUNNING)
        assert (await bench.job(new.id)).owner == job.owner


def _leased(accepted: Accepted) -> JobRecord:
    assert accepted.leased is not None
    return accepted.leased
