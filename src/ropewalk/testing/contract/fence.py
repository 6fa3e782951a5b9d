"""Every write of a worker through a lease that it does not hold, or no longer holds.

A worker usually drops such a write itself, so a store rarely has to refuse one. These tests send every kind of write
after every way of losing a lease. They neither wait nor set a clock, so they run on any clock.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

import pytest
from msgspec import structs

from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.operations import EndRequest
from ropewalk.domain.jobs.record import AttemptRecord, EventRecord, JobRecord, Progress
from ropewalk.domain.jobs.states import SETTLING, Move
from ropewalk.domain.logs import LogLine
from ropewalk.domain.search import Filter
from ropewalk.domain.time import MINUTE
from ropewalk.domain.workflow.completion import CompletionPlan, StepRecord, Suspension
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.errors import LeaseLost
from ropewalk.ports.store.capabilities import LOGS, USER_TRANSACTIONS, WORKFLOWS
from ropewalk.ports.store.leases import Holder, Note, Renewal
from ropewalk.ports.store.submission import Submission
from ropewalk.testing.contract.base import Contract, case, needs
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import BOOM, new_job, settlement

ME: Final = "me"
NOBODY: Final = 10**9
MANY: Final = 40
"""So many jobs that a store which writes jobs with consecutive numbers together does so."""
LINE: Final = LogLine(position=1, attempt=1, at=0, level=20, message="late", fields=None)
STEP: Final = StepRecord(position=0, name="late", kind="step", value=b"1", finished=True)
PROGRESS: Final = Progress(99.0, "late", 0)

LeaseLoss: TypeAlias = Callable[[Bench, JobRecord], Awaitable[Holder]]
"""A way to lose the lease of a job; it returns the stale lease under which the late writes are made."""


async def another_fence(_: Bench, job: JobRecord) -> Holder:
    return structs.replace(holder(job), fence=job.fence + 1)


async def an_older_fence(_: Bench, job: JobRecord) -> Holder:
    return structs.replace(holder(job), fence=job.fence - 1)


async def another_owner(_: Bench, job: JobRecord) -> Holder:
    return structs.replace(holder(job), owner="you")


async def a_job_that_never_was(_: Bench, job: JobRecord) -> Holder:
    return structs.replace(holder(job), seq=NOBODY)


async def given_back(bench: Bench, job: JobRecord) -> Holder:
    await bench.settle(job, Move.RELEASE)
    return holder(job)


async def given_to_another(bench: Bench, job: JobRecord) -> Holder:
    await bench.settle(job, Move.RELEASE)
    assert (await bench.claim_one(owner="you")).id == job.id
    return holder(job)


async def given_back_and_taken_again(bench: Bench, job: JobRecord) -> Holder:
    """Both leases belong to one worker and differ only in their fences."""
    await bench.settle(job, Move.RELEASE)
    assert (await bench.claim_one(owner=ME)).id == job.id
    return holder(job)


async def run_out(bench: Bench, job: JobRecord) -> Holder:
    """Renew the lease for no time at all, so that it is over at once, and let a sweep take it back."""
    await bench.store.renew(ME, [Renewal(seq=job.seq, fence=job.fence, lease_us=0)])
    assert [moved.job.id for moved in await bench.sweep()] == [job.id]
    return holder(job)


async def run_out_and_given_to_another(bench: Bench, job: JobRecord) -> Holder:
    late = await run_out(bench, job)
    assert (await bench.claim_one(owner="you")).id == job.id
    return late


async def cancelled(bench: Bench, job: JobRecord) -> Holder:
    await bench.settle(job, Move.RELEASE)
    await bench.cancel(job.id)
    return holder(job)


async def completed(bench: Bench, job: JobRecord) -> Holder:
    """A completed job keeps the name of its worker and its fence."""
    await bench.settle(job)
    return holder(job)


async def failed(bench: Bench, job: JobRecord) -> Holder:
    await bench.settle(job, Move.FAIL, error=BOOM)
    return holder(job)


async def completed_from_outside(bench: Bench, job: JobRecord) -> Holder:
    await bench.store.end("default", job.id, EndRequest(result=b"7"))
    return holder(job)


async def failed_from_outside(bench: Bench, job: JobRecord) -> Holder:
    await bench.store.end("default", job.id, EndRequest(error=BOOM))
    return holder(job)


async def deleted(bench: Bench, job: JobRecord) -> Holder:
    await bench.settle(job)
    await bench.store.delete("default", [job.id])
    return holder(job)


TAKEN, ALREADY, GONE = LossReason.TAKEN_BY_ANOTHER_WORKER, LossReason.ALREADY_COMPLETED, LossReason.NOT_FOUND
LEASE_LOSSES: Final[dict[LeaseLoss, LossReason]] = {
    **dict.fromkeys((another_fence, an_older_fence, another_owner, given_back, given_to_another), TAKEN),
    **dict.fromkeys((given_back_and_taken_again, run_out, run_out_and_given_to_another), TAKEN),
    **dict.fromkeys((completed, failed, completed_from_outside, failed_from_outside), ALREADY),
    **dict.fromkeys((a_job_that_never_was, deleted), GONE),
    cancelled: LossReason.CANCELLED,
}
FROM_OUTSIDE: Final = (completed_from_outside, failed_from_outside)
every_lease_loss = pytest.mark.parametrize(
    ("lease_loss", "reason"),
    [
        case(each, reason, of=(WORKFLOWS,) if each in FROM_OUTSIDE else (), id=each.__name__)
        for each, reason in LEASE_LOSSES.items()
    ],
)


class Seen(NamedTuple):
    """What a worker could have changed: everything is read before and after a late write."""

    job: JobRecord | None
    attempts: list[AttemptRecord]
    events: list[EventRecord]
    steps: list[StepRecord]
    lines: list[LogLine]
    jobs: int
    group: object


class FenceContract(Contract):
    """A write through a lease that the worker no longer holds changes nothing and is answered with the reason
    (safe-5).
    """

    @every_lease_loss
    async def test_no_settlement_through_a_stale_lease_is_accepted(
        self, bench: Bench, lease_loss: LeaseLoss, reason: LossReason
    ) -> None:
        """By any move, on whichever way a store takes."""
        job = await _held(bench)
        late = await lease_loss(bench, job)
        async for before in _unchanged(bench, job):
            complete = {WORKFLOWS, LOGS} <= bench.store.capabilities
            for move in SETTLING if complete else SETTLING.keys() - {Move.SUSPEND}:
                for how in _endings(move, complete=complete):
                    asked = settlement(job, move, **how)
                    asked = structs.replace(asked, seq=late.seq, fence=late.fence)
                    [answer] = await bench.settle_all(late.owner, [asked])
                    assert (answer.lost, answer.move, answer.job) == (reason, None, None), (move, how, before)

    @needs(WORKFLOWS)
    @every_lease_loss
    async def test_no_member_of_a_group_is_completed_through_a_stale_lease(
        self, bench: Bench, lease_loss: LeaseLoss, reason: LossReason
    ) -> None:
        """What only its scope has to hear of takes a way of its own."""
        parent = await bench.running(owner="parent")
        child = structs.replace(new_job(), group_id=parent.id, parent_id=parent.id, spawn_key="k")
        await bench.submit(child, under=holder(parent))
        job = await bench.claim_one(owner=ME)
        late = await lease_loss(bench, job)
        async for before in _unchanged(bench, job, group=parent.id):
            for plan in (None, CompletionPlan(contribution=Contribution(type="t", value=b"5", reducer="sum"))):
                asked = settlement(job, result=b"1", plan=plan)
                asked = structs.replace(asked, seq=late.seq, fence=late.fence)
                [answer] = await bench.settle_all(late.owner, [asked])
                assert (answer.lost, answer.move) == (reason, None), before

    @every_lease_loss
    async def test_no_renewal_or_note_is_written_through_a_stale_lease(
        self, bench: Bench, lease_loss: LeaseLoss, reason: LossReason
    ) -> None:
        """Renewal, progress, log lines and checkpoint."""
        job = await _held(bench)
        late = await lease_loss(bench, job)
        lines = (LINE,) if LOGS in bench.store.capabilities else ()
        async for _ in _unchanged(bench, job):
            asked = Renewal(seq=late.seq, fence=late.fence, lease_us=MINUTE, progress=PROGRESS, lines=lines)
            renewed = await bench.store.renew(late.owner, [asked])
            assert [lost.reason for lost in renewed.lost] == [reason]
            noted = await bench.store.note(Note(holder=late, checkpoint=b"[9]", progress=PROGRESS))
            assert noted.lost is reason

    @needs(WORKFLOWS)
    @every_lease_loss
    async def test_no_step_signal_or_child_is_written_through_a_stale_lease(
        self, bench: Bench, lease_loss: LeaseLoss, reason: LossReason
    ) -> None:
        """What a handler of a workflow writes while it runs."""
        job = await _held(bench)
        await bench.store.signal("default", job.id, "ring", b"1")
        late = await lease_loss(bench, job)
        async for _ in _unchanged(bench, job):
            assert (await bench.store.record_step(late, STEP)).lost is reason
            answer = await bench.store.take_signal(late, STEP, "ring")
            assert (answer.lost, answer.taken) == (reason, None)
            child = structs.replace(new_job(), group_id=job.id, parent_id=job.id, spawn_key="k")
            [refused] = await bench.store.submit([Submission(jobs=[child], under=late)])
            assert isinstance(refused, LeaseLost)
            assert refused.reason == reason

    @needs(USER_TRANSACTIONS)
    @every_lease_loss
    async def test_no_user_transaction_completes_a_job_through_a_stale_lease(
        self, bench: Bench, lease_loss: LeaseLoss, reason: LossReason
    ) -> None:
        """A user's own writes are undone with the completion that was refused."""
        transaction = bench.store.transaction(MINUTE)
        job = await _held(bench)
        late = await lease_loss(bench, job)
        async for _ in _unchanged(bench, job):
            await transaction.execute("SELECT 1")
            asked = structs.replace(settlement(job, result=b"1"), seq=late.seq, fence=late.fence)
            [answer] = (await transaction.settle(late.owner, asked)).settled
            assert (answer.lost, answer.move) == (reason, None)

    @pytest.mark.parametrize("stale", ["fence", "owner", "ended"])
    async def test_none_of_many_stale_settlements_is_accepted(self, bench: Bench, stale: str) -> None:
        """Neighbours may be written together: by their numbers, their fences and their owner."""
        jobs = await _many(bench)
        asked = [settlement(job, result=b"1") for job in jobs]
        if stale == "ended":
            await bench.settle_all(ME, [settlement(job, result=b"0") for job in jobs])
        if stale == "fence":
            asked = [structs.replace(each, fence=each.fence + 1) for each in asked]
        before = [await bench.job(job.id) for job in jobs]
        answers = await bench.settle_all("you" if stale == "owner" else ME, asked)
        assert [answer.move for answer in answers] == [None] * MANY
        assert [await bench.job(job.id) for job in jobs] == before

    async def test_one_stale_settlement_does_not_refuse_the_others(self, bench: Bench) -> None:
        jobs = await _many(bench)
        stale = jobs[MANY // 2]
        asked = [settlement(job, result=b"1") for job in jobs]
        asked[MANY // 2] = structs.replace(asked[MANY // 2], fence=stale.fence + 1)
        moves = [answer.move for answer in await bench.settle_all(ME, asked)]
        assert [at for at, move in enumerate(moves) if move is not Move.COMPLETE] == [MANY // 2]
        assert (await bench.job(stale.id)).result is None
        assert (await bench.settle(stale)).move is Move.COMPLETE


async def _held(bench: Bench) -> JobRecord:
    return await bench.running(owner=ME, max_attempts=None)


async def _many(bench: Bench) -> list[JobRecord]:
    await bench.submit(*(new_job() for _ in range(MANY)))
    jobs = await bench.claim(MANY, owner=ME)
    assert len(jobs) == MANY
    return jobs


def _endings(move: Move, *, complete: bool) -> list[dict[str, object]]:
    """Return settlements with different contents, because a store may write each kind in its own way."""
    if move is Move.COMPLETE:
        plan = CompletionPlan(children=(new_job(),))
        plain: list[dict[str, object]] = [{"result": b"late"}, {"result": b"late", "alone": False}]
        return [*plain, {"lines": (LINE,)}, {"plan": plan}] if complete else plain
    if move is Move.SUSPEND:
        return [{"suspension": Suspension(position=0, name="nap", span_us=MINUTE)}]
    if not complete:
        return [{"error": BOOM}, {"error": BOOM, "crashed": True}]
    return [{"error": BOOM}, {"error": BOOM, "lines": (LINE,), "crashed": True}]


async def _unchanged(bench: Bench, job: JobRecord, *, group: str | None = None) -> AsyncIterator[Seen]:
    """Check that what happens inside changes nothing."""
    before = await _seen(bench, job, group)
    yield before
    assert await _seen(bench, job, group) == before


async def _seen(bench: Bench, job: JobRecord, group: str | None) -> Seen:
    store = bench.store
    workflows, logs = WORKFLOWS.if_declared(store), LOGS.if_declared(store)
    trail = await store.history("default", job.id)
    groups = {} if group is None else await store.groups("default", [group])
    return Seen(
        job=None if trail is None else trail.job,
        attempts=[] if trail is None else trail.attempts,
        events=[] if trail is None else trail.events,
        steps=[] if workflows is None else await workflows.steps(job.seq),
        lines=[] if logs is None else await logs.log("default", job.id),
        jobs=await store.count("default", Filter()),
        group=[groups, [] if group is None else await store.contributions("default", group)],
    )
