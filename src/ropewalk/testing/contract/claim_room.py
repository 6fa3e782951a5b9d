"""Limits that a worker puts on its own claim: room for each type, and jobs that it has declined."""

from __future__ import annotations

from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.capabilities import LIMITS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import LEASE, new_job, worker_card
from ropewalk.testing.contract.limits import at_most


class RoomContract(Contract):
    """A claim gives no more jobs of a type than the worker has room for, and is not held up by the others (R12)."""

    async def test_a_type_without_room_holds_up_no_other_job(self, bench: Bench) -> None:
        """R12: however many of it come first."""
        flood = [await bench.add("t") for _ in range(20)]
        behind = [await bench.add("a") for _ in range(3)]
        assert [job.id for job in await bench.claim(9, room={"t": 2})] == [*flood[:2], *behind]
        assert [job.id for job in await bench.claim(9, room={"t": 0})] == []
        assert [job.id for job in await bench.claim(3, room={"a": 0})] == flood[2:5]

    async def test_the_room_of_a_type_counts_all_queues_and_tenants(self, bench: Bench) -> None:
        """R12: the type counts, wherever its jobs wait."""
        for queue in ("q", "r"):
            for tenant in ("one", "other"):
                await bench.add("t", queue=queue, tenant=tenant)
                await bench.add("t", queue=queue, tenant=tenant, limit_key=bench.limit_key("k"))
        assert len(await bench.claim(9, room={"t": 3})) == 3
        assert len(await bench.claim(9, room={"t": 9})) == 5

    async def test_the_room_of_a_type_counts_suspects(self, bench: Bench) -> None:
        """R12, R20: one that was running when its worker died is one of its type."""
        lost = await bench.running(owner="dead")
        await bench.runtime.advance(LEASE / SECOND)
        await bench.sweep()
        await bench.add()
        assert [job.id for job in await bench.claim(9, room={"t": 1})] == [lost.id]

    @needs(LIMITS)
    async def test_the_narrower_of_room_and_limit_counts(self, bench: Bench) -> None:
        """R12, R13: the narrower of the two counts."""
        await bench.store.put_limit(at_most(2))
        await bench.submit(*(new_job(limit_key="k") for _ in range(4)))
        assert len(await bench.claim(9, room={"t": 1})) == 1
        assert len(await bench.claim(9, room={"t": 5})) == 1

    async def test_room_that_is_not_used_up_does_not_change_the_order(self, bench: Bench) -> None:
        """R12: order is that of the line."""
        ids = [await bench.add(name, priority=number % 3) for number, name in enumerate("tatata")]
        in_order = sorted(ids, key=lambda job_id: (-(ids.index(job_id) % 3), ids.index(job_id)))
        assert [job.id for job in await bench.claim(9, room={"t": 9, "a": 9})] == in_order


class DeclinedJobContract(Contract):
    """A claim leaves out the jobs that its worker has declined, and other workers get them (R14)."""

    async def test_a_declined_job_is_left_for_other_workers(self, bench: Bench) -> None:
        """R14: the declining worker gets what stands behind, anybody else the job itself."""
        first, second, third = [await bench.running() for _ in range(3)]
        for job in (first, second, third):
            await bench.settle(job, Move.RELEASE)
        ignored = frozenset({first.seq, second.seq})
        assert [job.id for job in await bench.claim(9, ignored=ignored)] == [third.id]
        assert await bench.claim(9, ignored=ignored) == []
        assert [job.id for job in await bench.claim(9, owner="other")] == [first.id, second.id]

    async def test_a_declined_last_attempt_does_not_hold_up_its_line(self, bench: Bench) -> None:
        """R14: it would, were it given only into a free slot."""
        declined = await bench.running(max_attempts=1)
        await bench.settle(declined, Move.RELEASE)
        behind = await bench.add()
        ignored = frozenset({declined.seq})
        assert [job.id for job in await bench.claim(9, slots=0, ignored=ignored)] == [behind]

    async def test_the_deadline_of_a_declined_job_still_counts(self, bench: Bench) -> None:
        """R5: passed over or not."""
        declined = await bench.running(ttl_us=SECOND)
        await bench.settle(declined, Move.RELEASE)
        await bench.runtime.advance(2)
        await bench.claim(9, ignored=frozenset({declined.seq}))
        assert await bench.state(declined.id) is State.DEAD_LETTER

    async def test_a_job_that_others_overtook_in_the_buffer_has_not_started(self, bench: Bench) -> None:
        """safe-7: a worker that dies burns no attempt of a job that waited while others went ahead."""
        await bench.store.register(worker_card("dead"))
        for _ in range(4):
            await bench.add()
        jobs = await bench.claim(4, owner="dead", started_upto=0)
        await bench.claim(0, owner="dead", first_ticket=5, started_upto=3, unstarted=(1, 3))
        await bench.claim(0, owner="dead", first_ticket=5, started_upto=3, unstarted=(1,))
        await bench.runtime.advance(LEASE / SECOND)
        moved = {each.job.ticket: each.move for each in await bench.sweep(9)}
        assert moved == {1: Move.RELEASE, 2: Move.LOSE, 3: Move.LOSE, 4: Move.RELEASE}
        crashes = [(await bench.job(job.id)).crashes for job in jobs]
        assert crashes == [0, 1, 1, 0]
