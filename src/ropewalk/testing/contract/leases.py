"""Renewing leases, and writing notes under them."""

from __future__ import annotations

import pytest
from msgspec import structs

from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.record import JobRecord, Progress
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.leases import CancelNotice, Lost, Note, NoteAnswer, Renewal
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import LEASE, worker_card


class RenewContract(Contract):
    """One call renews all leases of a worker and reports the lost ones with their reasons (R2, R4)."""

    async def test_a_lease_is_extended_from_now(self, bench: Bench) -> None:
        job = await bench.running(owner="me")
        await bench.runtime.advance(10)
        renewed = await bench.store.renew("me", [_renewal(job, lease_us=90 * SECOND)])
        assert (renewed.lost, renewed.cancels, renewed.busy) == ([], [], [])
        after = await bench.job(job.id)
        assert after.lease_expires_at == bench.runtime.now() + 90 * SECOND
        assert after == structs.replace(job, lease_expires_at=after.lease_expires_at), "not history: rev stays"

    async def test_a_renewed_lease_is_not_taken_back(self, bench: Bench) -> None:
        job = await bench.running(owner="me")
        for _ in range(5):
            await bench.runtime.advance(29)
            await bench.store.renew("me", [_renewal(job)])
        assert await bench.sweep(9) == []
        assert (await bench.settle(job)).move is Move.COMPLETE

    async def test_an_expired_lease_nobody_took_back_is_renewed(self, bench: Bench) -> None:
        """The fence is what counts."""
        job = await bench.running(owner="me")
        await bench.runtime.advance(hours=1)
        renewed = await bench.store.renew("me", [_renewal(job)])
        assert renewed.lost == []
        assert await bench.sweep(9) == []

    async def test_every_lost_lease_is_reported_with_its_reason(self, bench: Bench) -> None:
        """R4: typed reasons; the others in the call are renewed."""
        moves = {
            Move.COMPLETE: LossReason.ALREADY_COMPLETED,
            Move.FAIL: LossReason.ALREADY_COMPLETED,
            Move.BURY: LossReason.ALREADY_COMPLETED,
            Move.CANCEL: LossReason.CANCELLED,
            Move.RETRY: LossReason.TAKEN_BY_ANOTHER_WORKER,
        }
        for _ in range(len(moves) + 2):
            await bench.add()
        kept, gone, *ending = await bench.claim(9, owner="me")
        for job, move in zip(ending, moves, strict=True):
            await bench.settle(job, move, delay_us=SECOND)
        await bench.settle(gone)
        await bench.store.delete("default", [gone.id])
        await bench.runtime.advance(5)
        renewed = await bench.store.renew("me", [_renewal(job) for job in (*ending, gone, kept)])
        assert renewed.lost == [
            *(
                Lost(seq=job.seq, fence=job.fence, reason=reason)
                for job, reason in zip(ending, moves.values(), strict=True)
            ),
            Lost(seq=gone.seq, fence=gone.fence, reason=LossReason.NOT_FOUND),
        ]
        assert (await bench.job(kept.id)).lease_expires_at == bench.runtime.now() + LEASE

    async def test_a_renewal_with_another_fence_or_owner_is_lost(self, bench: Bench) -> None:
        """safe-5."""
        job = await bench.running(owner="me")
        before = await bench.job(job.id)
        await bench.runtime.advance(5)
        for owner, fence in (("you", job.fence), ("me", job.fence + 1)):
            renewed = await bench.store.renew(owner, [Renewal(seq=job.seq, fence=fence, lease_us=LEASE)])
            assert [lost.reason for lost in renewed.lost] == [LossReason.TAKEN_BY_ANOTHER_WORKER]
        assert await bench.job(job.id) == before

    async def test_a_cancellation_is_told_until_the_attempt_ends(self, bench: Bench) -> None:
        """R8: control rides on renewals."""
        job = await bench.running(owner="me")
        await bench.store.cancel("default", [job.id], reason="enough", force=False)
        notice = CancelNotice(seq=job.seq, fence=job.fence, reason="enough", force=False)
        for _ in range(2):
            assert (await bench.store.renew("me", [_renewal(job)])).cancels == [notice]
        await bench.store.cancel("default", [job.id], reason="now", force=True)
        [upgraded] = (await bench.store.renew("me", [_renewal(job)])).cancels
        assert (upgraded.reason, upgraded.force) == ("now", True)
        await bench.settle(job, Move.CANCEL)
        renewed = await bench.store.renew("me", [_renewal(job)])
        assert renewed.cancels == []
        assert [lost.reason for lost in renewed.lost] == [LossReason.CANCELLED]

    async def test_progress_rides_on_a_renewal(self, bench: Bench) -> None:
        """R9: its time is the store's; none leaves it; it is no history."""
        job = await bench.running(owner="me")
        await bench.runtime.advance(5)
        at = bench.runtime.now()
        await bench.store.renew("me", [_renewal(job, progress=Progress(40.5, "half way", 0))])
        seen = await bench.job(job.id)
        assert seen.progress == Progress(40.5, "half way", at)
        assert (seen.rev, seen.updated_at) == (job.rev, job.updated_at)
        await bench.runtime.advance(5)
        await bench.store.renew("me", [_renewal(job)])
        assert (await bench.job(job.id)).progress == Progress(40.5, "half way", at)

    async def test_one_lease_may_be_renewed_twice_in_one_request(self, bench: Bench) -> None:
        """R9: as if it had been two requests; the one without progress takes nothing away."""
        job = await bench.running(owner="me")
        await bench.store.renew("me", [_renewal(job, progress=Progress(7.0, None, 0)), _renewal(job)])
        assert (await bench.job(job.id)).progress == Progress(7.0, None, bench.runtime.now())

    async def test_a_lost_lease_reports_no_progress(self, bench: Bench) -> None:
        """safe-5."""
        job = await bench.running(owner="me")
        await bench.store.renew("you", [_renewal(job, progress=Progress(1.0, None, 0))])
        assert (await bench.job(job.id)).progress is None

    async def test_a_renewal_is_the_workers_sign_of_life(self, bench: Bench) -> None:
        """With no leases too; an unknown worker gets no card by it."""
        await bench.store.register(worker_card("me"))
        registered = bench.runtime.now()
        await bench.runtime.advance(10)
        await bench.store.renew("me", [])
        await bench.store.renew("nobody", [])
        [card] = await bench.store.workers()
        assert (card.id, card.started_at, card.beat_at) == ("me", registered, bench.runtime.now())


class NoteContract(Contract):
    """A note writes checkpoint and progress together, and only under a current lease (R9)."""

    async def test_a_checkpoint_is_kept_for_the_next_attempt(self, bench: Bench) -> None:
        job = await bench.running()
        assert await bench.store.note(Note(holder=holder(job), checkpoint=b"[1]")) == NoteAnswer()
        seen = await bench.job(job.id)
        assert (seen.checkpoint, seen.rev, seen.updated_at) == (b"[1]", job.rev, job.updated_at)
        await bench.settle(job, Move.RETRY)
        assert (await bench.claim_one()).checkpoint == b"[1]"

    async def test_a_note_without_a_checkpoint_keeps_the_newest_one(self, bench: Bench) -> None:
        job = await bench.running()
        await bench.store.note(Note(holder=holder(job), checkpoint=b"[1]"))
        await bench.store.note(Note(holder=holder(job), checkpoint=b""))
        await bench.store.note(Note(holder=holder(job), progress=Progress(3.0, None, 0)))
        seen = await bench.job(job.id)
        assert seen.checkpoint == b""
        assert seen.progress == Progress(3.0, None, bench.runtime.now())

    async def test_a_note_is_answered_with_a_requested_cancellation(self, bench: Bench) -> None:
        """R8."""
        job = await bench.running()
        await bench.store.cancel("default", [job.id], reason="r", force=True)
        noted = await bench.store.note(Note(holder=holder(job), checkpoint=b"[1]"))
        assert noted == NoteAnswer(cancel=CancelNotice(seq=job.seq, fence=job.fence, reason="r", force=True))
        assert (await bench.job(job.id)).checkpoint == b"[1]"

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"fence": 99}, LossReason.TAKEN_BY_ANOTHER_WORKER),
            ({"owner": "you"}, LossReason.TAKEN_BY_ANOTHER_WORKER),
            ({"seq": 10**9}, LossReason.NOT_FOUND),
        ],
    )
    async def test_a_stale_note_changes_nothing(
        self, bench: Bench, change: dict[str, object], reason: LossReason
    ) -> None:
        """safe-5."""
        job = await bench.running()
        stale = Note(holder=structs.replace(holder(job), **change), checkpoint=b"[9]", progress=Progress(9.0, None, 0))
        assert await bench.store.note(stale) == NoteAnswer(lost=reason)
        assert await bench.job(job.id) == job

    async def test_a_note_after_the_end_changes_nothing(self, bench: Bench) -> None:
        """safe-5."""
        job = await bench.running()
        await bench.settle(job)
        done = await bench.job(job.id)
        assert await bench.store.note(Note(holder=holder(job), checkpoint=b"[9]")) == NoteAnswer(
            lost=LossReason.ALREADY_COMPLETED
        )
        assert await bench.job(job.id) == done


def _renewal(job: JobRecord, *, lease_us: int = LEASE, progress: Progress | None = None) -> Renewal:
    return Renewal(seq=job.seq, fence=job.fence, lease_us=lease_us, progress=progress)
