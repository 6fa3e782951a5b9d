"""Quotas on waiting jobs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from ropewalk.domain.jobs.operations import RetryRequest
from ropewalk.domain.jobs.record import DEFAULT_TENANT, CompensationSpec, JobRecord, NewJob
from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.limits.quota import SOON_SECONDS, Quota, QuotaUse
from ropewalk.domain.limits.rate import Rate
from ropewalk.domain.schedules.schedule import Every, Schedule
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.errors import Conflict, QuotaExceeded
from ropewalk.ports.store.capabilities import QUOTAS, SCHEDULES
from ropewalk.ports.store.schedules import ScheduleChange
from ropewalk.ports.store.submission import SkipQueue, Submission
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import BOOM, LEASE, gate_on, keyed, new_job
from ropewalk.testing.contract.store_scheduler import StoreScheduler, plan_of
from ropewalk.testing.contract.workflow_bench import plan


def at_most(pending: int | None = None, *, tenant: str = DEFAULT_TENANT, **parts: Any) -> Quota:
    return Quota(tenant=tenant, pending=pending, **parts)


async def refused(bench: Bench, *jobs: Any, **how: Any) -> QuotaExceeded:
    answer = await bench.answer(*jobs, **how)
    assert isinstance(answer, QuotaExceeded), f"let in: {answer}"
    return answer


def told(error: QuotaExceeded) -> tuple[str, int, int, float | None]:
    return error.limit, error.current, error.maximum, error.retry_after


async def use(bench: Bench, tenant: str = DEFAULT_TENANT) -> QuotaUse:
    found = await bench.store.quota_use(tenant)
    assert found is not None
    return found


@needs(QUOTAS)
class PendingQuotaContract(Contract):
    """No more jobs of a tenant wait than its quota allows, if they were submitted from outside (S9)."""

    async def test_no_more_jobs_are_submitted_than_may_wait(self, bench: Bench) -> None:
        """S9: refused precisely, and let in again when one has been taken up."""
        await bench.store.put_quota(at_most(3))
        for _ in range(3):
            await bench.add()
        assert told(await refused(bench, new_job())) == ("pending", 3, 3, SOON_SECONDS)
        await bench.claim_one()
        await bench.add()
        assert told(await refused(bench, keyed("k"))) == ("pending", 3, 3, SOON_SECONDS)

    async def test_every_kind_of_waiting_job_counts(self, bench: Bench) -> None:
        """S9: delayed, pending, retrying and scheduled jobs, with a limit key or without, of any queue and type."""
        await bench.store.put_quota(at_most(6))
        retried = await bench.running()
        await bench.settle(retried, Move.RETRY, error=BOOM, delay_us=HOUR)
        first = await bench.add(delay_us=HOUR, limit_key="k")
        await bench.submit(new_job("a", gate=gate_on(first), limit_key="l"), new_job("b", queue="q", limit_key="k"))
        await bench.add(gate=gate_on(first))
        assert (await use(bench)).pending == 5
        await bench.add()
        assert told(await refused(bench, new_job(delay_us=1))) == ("pending", 6, 6, SOON_SECONDS)

    @pytest.mark.parametrize("fields", [{}, {"delay_us": HOUR}, {"limit_key": "k"}])
    async def test_a_batch_is_submitted_whole_or_not_at_all(self, bench: Bench, fields: dict[str, Any]) -> None:
        """S9, safe-3: nothing half-written."""
        await bench.store.put_quota(at_most(4))
        await bench.add()
        assert told(await refused(bench, *(new_job(**fields) for _ in range(4)))) == ("pending", 1, 4, SOON_SECONDS)
        assert (await use(bench)).pending == 1
        await bench.submit(*(new_job(**fields) for _ in range(3)))

    async def test_a_batch_that_never_fits_is_refused_without_a_time(self, bench: Bench) -> None:
        """S9: waiting is no help, so no time is named."""
        await bench.store.put_quota(at_most(2))
        assert told(await refused(bench, new_job(), new_job(), new_job())) == ("pending", 0, 2, None)

    async def test_submissions_that_share_a_commit_are_checked_in_order(self, bench: Bench) -> None:
        """S9: what is let in counts for the next; one that is refused takes nothing from the others."""
        await bench.store.put_quota(at_most(3))
        sizes = (2, 2, 1, 1)
        answers = await bench.store.submit([Submission(jobs=[new_job() for _ in range(size)]) for size in sizes])
        assert [isinstance(answer, QuotaExceeded) for answer in answers] == [False, True, False, True]
        assert (await use(bench)).pending == 3

    async def test_a_duplicate_uses_nothing_of_a_quota(self, bench: Bench) -> None:
        """S9, S5: by id or by key, beside new ones too."""
        await bench.store.put_quota(at_most(2, submissions=Rate(2, per=60)))
        await bench.submit(new_job(id="one"), keyed("k", id="two"))
        again = await bench.submit(new_job(id="one"), keyed("k"))
        assert [accepted.duplicate for accepted in again] == [True, True]
        assert told(await refused(bench, new_job(id="one"), new_job(id="three"))) == ("pending", 2, 2, SOON_SECONDS)
        await bench.claim_one()
        assert told(await refused(bench, new_job(id="two"), new_job(id="three")))[0] == "submissions"

    async def test_a_repetition_within_a_batch_counts_once(self, bench: Bench) -> None:
        """S9."""
        await bench.store.put_quota(at_most(2))
        await bench.submit(new_job(id="one"), new_job(id="one"), keyed("k", id="two"), keyed("k", id="three"))
        assert (await use(bench)).pending == 2

    async def test_another_conflict_is_reported_before_the_quota(self, bench: Bench) -> None:
        """S9, S5."""
        await bench.store.put_quota(at_most(1))
        await bench.submit(new_job(id="one"))
        assert isinstance(await bench.answer(new_job(id="one", input=b"[2]"), new_job()), Conflict)

    async def test_a_job_that_skips_the_queue_counts_as_submitted(self, bench: Bench) -> None:
        """S9, S7."""
        await bench.store.put_quota(at_most(1))
        skip = SkipQueue(owner="me", ticket=1, lease_us=LEASE)
        [first] = await bench.submit(new_job(), skip_queue=skip)
        assert first.leased is not None
        await bench.add()
        await refused(bench, new_job(), skip_queue=skip)

    async def test_a_lowered_quota_refuses_until_enough_are_gone(self, bench: Bench) -> None:
        """S9: what is there stays; how far it is over is not counted."""
        ids = [await bench.add() for _ in range(5)]
        await bench.store.put_quota(at_most(2))
        assert told(await refused(bench, new_job())) == ("pending", 3, 2, SOON_SECONDS)
        await bench.cancel(*ids[:4])
        await bench.add()
        assert (await use(bench)).pending == 2


@needs(QUOTAS)
class InsideQuotaContract(Contract):
    """Jobs that other jobs create are never refused because of a quota, but they count (S9)."""

    async def test_children_and_continuations_are_not_refused(self, bench: Bench) -> None:
        """S9, W1: but for others there is no room."""
        await bench.store.put_quota(at_most(1))
        root = await bench.running()
        await bench.submit(*(_child(root) for _ in range(3)), under=holder(root))
        left = plan(new_job("a"), new_job("a"), then=new_job("b"))
        assert (await bench.settle(root, plan=left)).refused is None
        assert (await use(bench)).pending == 6
        assert told(await refused(bench, new_job())) == ("pending", 2, 1, SOON_SECONDS)

    async def test_spawned_children_are_not_refused_beside_other_submissions(self, bench: Bench) -> None:
        """S9: what is spawned comes in though there is no room, and counts for what comes behind it."""
        await bench.store.put_quota(at_most(3))
        root = await bench.running()
        answers = await bench.store.submit(
            [
                Submission(jobs=[_child(root), _child(root)], under=holder(root)),
                Submission(jobs=[new_job()]),
                Submission(jobs=[new_job()]),
                Submission(jobs=[_child(root), _child(root, "a")], under=holder(root)),
            ]
        )
        assert [isinstance(answer, QuotaExceeded) for answer in answers] == [False, False, True, False]

    async def test_retries_and_compensation_are_not_refused(self, bench: Bench) -> None:
        """S9, R5, R8: nor a retry by hand."""
        await bench.store.put_quota(at_most(1))
        failing = await bench.running(on_failure=CompensationSpec(type="undo"))
        await bench.add()
        await bench.settle(failing, Move.FAIL, error=BOOM)
        [answer] = await bench.store.retry(DEFAULT_TENANT, [failing.id], RetryRequest())
        assert answer.state is State.SCHEDULED
        assert (await use(bench)).pending == 3

    async def test_a_job_taken_back_from_a_lost_lease_is_not_refused(self, bench: Bench) -> None:
        """S9, live-2."""
        await bench.store.put_quota(at_most(1))
        await bench.running()
        await bench.add()
        await bench.runtime.advance(LEASE / SECOND)
        await bench.sweep()
        assert (await use(bench)).pending == 2

    @needs(SCHEDULES)
    async def test_a_fire_over_the_quota_is_dropped_and_its_schedule_goes_on(self, bench: Bench) -> None:
        """S9, T1: the change is made, and the answer says what became of each job."""
        await bench.store.put_quota(at_most(1))
        scheduler = StoreScheduler(bench.store)
        await scheduler.put(None, Schedule(name="s", plan=plan_of(Every(HOUR)), next_fire=5))
        before = await scheduler.read("s")
        after = Schedule(name="s", plan=plan_of(Every(HOUR)), next_fire=9)
        change = ScheduleChange(before=before, after=after, jobs=[new_job(id="one"), new_job(id="two")])
        [changed] = await bench.store.change_schedules([change])
        assert changed is not None
        assert [isinstance(answer, QuotaExceeded) for answer in changed.answers] == [False, True]
        assert (await scheduler.read("s")).schedule == after


def _child(parent: JobRecord, type: str = "t") -> NewJob:  # noqa: A002  the field's name
    made = new_job(type, parent_id=parent.id)
    return structs.replace(made, spawn_key=made.id)
