"""What one worker holds, as somebody sees it who serves workers that have no store of their own."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from ropewalk.domain.jobs.record import JobRecord, Progress
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.time import HOUR, MINUTE, SECOND
from ropewalk.ports.store.leases import HeldJobs, Note
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import LEASE, worker_card

of_each_owner = pytest.mark.parametrize("owner", ["0198abcdef", "token.0198abcdef"])
"""A local worker, and a remote one, whose id has a dot: a store may find what they hold in different ways."""


class HeldContract(Contract):
    """W3: the leases of a worker and its card, in one look."""

    @of_each_owner
    async def test_a_worker_holds_what_it_claimed(self, bench: Bench, owner: str) -> None:
        await bench.store.register(worker_card(owner, concurrency=7))
        assert (await bench.store.held(owner)).jobs == []
        await bench.add("t", id="first", tenant="acme", timeout_us=MINUTE, ttl_us=HOUR, tags={"a": "b"})
        await bench.add("t", id="second", priority=-1)
        await bench.add("a", id="other")
        claimed = await bench.claim(2, owner=owner, types=["t"])
        await bench.claim(1, owner="other", types=["a"])
        await bench.runtime.advance(1)
        held = await bench.store.held(owner)
        assert held.jobs == [_without_bytes(job) for job in sorted(claimed, key=lambda job: job.seq)]
        assert [(job.id, job.tenant, job.lease_expires_at) for job in held.jobs] == [
            ("first", "acme", held.now - SECOND + LEASE),
            ("second", "default", held.now - SECOND + LEASE),
        ]
        [card] = await bench.store.workers()
        assert (held.card, held.now) == (card, bench.runtime.now())
        assert (card.concurrency, card.held) == (7, 2)

    @of_each_owner
    async def test_payloads_stay_where_they_are(self, bench: Bench, owner: str) -> None:
        """Only the bytes: what a handler told of its progress is there."""
        job = await bench.running(owner=owner, input=b"[1]")
        progress = Progress(50.0, "half", bench.runtime.now())
        await bench.store.note(Note(holder=holder(job), checkpoint=b"2", progress=progress))
        [found] = (await bench.store.held(owner)).jobs
        assert (found.input, found.checkpoint, found.result, found.progress) == (b"", None, None, progress)
        assert (await bench.job(job.id)).checkpoint == b"2"

    @of_each_owner
    async def test_what_has_ended_or_was_lost_is_not_held(self, bench: Bench, owner: str) -> None:
        endings: list[tuple[Move, dict[str, Any]]] = [
            (Move.COMPLETE, {}),
            (Move.FAIL, {}),
            (Move.RETRY, {"run_at": bench.runtime.now() + HOUR}),
        ]
        for number, (move, how) in enumerate(endings):
            await bench.settle(await bench.running(owner=owner, id=f"ended-{number}"), move, **how)
        lost = await bench.running(owner=owner, id="lost")
        assert [job.id for job in (await bench.store.held(owner)).jobs] == ["lost"]
        await bench.runtime.advance(LEASE / SECOND)
        assert [job.id for job in (await bench.store.held(owner)).jobs] == ["lost"], "nobody has taken it back"
        await bench.sweep()
        assert (await bench.store.held(owner)).jobs == []
        again = await bench.claim_one(owner="other")
        assert (again.id, (await bench.store.held(owner)).jobs) == (lost.id, [])

    @of_each_owner
    async def test_a_cancellation_that_was_requested_is_seen(self, bench: Bench, owner: str) -> None:
        job = await bench.running(owner=owner)
        await bench.cancel(job.id, reason="why", force=True)
        [found] = (await bench.store.held(owner)).jobs
        assert found.cancel is not None
        assert (found.cancel.reason, found.cancel.force) == ("why", True)

    @of_each_owner
    async def test_an_unknown_worker_has_no_card(self, bench: Bench, owner: str) -> None:
        assert await bench.store.held(owner) == HeldJobs(now=bench.runtime.now(), card=None, jobs=[])
        job = await bench.running(owner=owner)
        held = await bench.store.held(owner)
        assert (held.card, [each.id for each in held.jobs]) == (None, [job.id])


def _without_bytes(job: JobRecord) -> JobRecord:
    return structs.replace(job, input=b"", checkpoint=None, result=None)
