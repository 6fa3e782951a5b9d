"""What a worker does not want in a claim: more of a type than it has room for, and jobs it declined."""

from __future__ import annotations

from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.capabilities import LIMITS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.build import LEASE, new_job, worker_card
from ropewalk.testing.contract.limits import at_most


class RoomContract(Contract):
    """R12: a worker asks for no more of a type than it may run, and gets everything else."""

    async def test_a_type_without_room_stands_in_nobodys_way(self, bench: Bench) -> None:
        """R12: however many of it come first."""
        flood = [await bench.add("t") for _ in range(20)]
        behind = [await bench.add("a") for _ in range(3)]
        assert [job.id for job in await bench.claim(9, room={"t": 2})] == [*flood[:2], *behind]
        assert [job.id for job in await bench.claim(9, room={"t": 0})] == []
        assert [job.id for job in await bench.claim(3, room={"a": 0})] == flood[2:5]

    async def test_room_is_that_of_all_queues_and_tenants(self, bench: Bench) -> None:
        """R12: the type counts, wherever its jobs wait."""
        for queue in ("q", "r"):
            for tenant in ("one", "other"):
                await bench.add("t", queue=queue, tenant=tenant)
                await bench.add("t", queue=queue, tenant=tenant, limit_key=bench.limit_key("k"))
        assert len(await bench.claim(9, room={"t": 3})) == 3
        assert len(await bench.claim(9, room={"t": 9})) == 5

    async def test_room_counts_suspects_too(self, bench: Bench) -> None:
        """R12, R20: one that was running when its worker died is one of its type."""
        lost = await bench.running(owner="dead")
        await bench.runtime.advance(LEASE / SECOND)
        await bench.sweep()
        await bench.add()
        assert [job.id for job in await bench.claim(9, room={"t": 1})] == [lost.id]

    @needs(LIMITS)
    async def test_room_beside_a_limit(self, bench: Bench) -> None:
        """R12, R13: the narrower of the two counts."""
        await bench.store.put_limit(at_most(2))
        await bench.submit(*(new_job(limit_key="k") for _ in range(4)))
        assert len(await bench.claim(9, room={"t": 1})) == 1
        assert len(await bench.claim(9, room={"t": 5})) == 1

    async def test_a_room_that_is_not_used_up_changes_nothing(self, bench: Bench) -> None:
        """R12: order is that of the line."""
        ids = [await bench.add(name, priority=number % 3) for number, name in enumerate("tatata")]
        in_order = sorted(ids, key=lambda job_id: (-(ids.index(job_id) % 3), ids.index(job_id)))
        assert [job.id for job in await bench.claim(9, room={"t": 9, "a": 9})] == in_order


class PassingContract(Contract):
    """R14: what a worker declined stays where it is, for others."""

    async def test_it_is_left_for_others(self, bench: Bench) -> None:
        """R14: the declining worker gets what stands behind, anybody else the job itself."""
        first, second, third = [await bench.running() for _ in range(3)]
        for job in (first, second, third):
            await bench.settle(job, Move.RELEASE)
        passing = frozenset({first.seq, second.seq})
        assert [job.id for job in await bench.claim(9, passing=passing)] == [third.id]
        assert await bench.claim(9, passing=passing) == []
        assert [job.id for job in await bench.claim(9, owner="other")] == [first.id, second.id]

    async def test_one_on_its_last_attempt_does_not_end_the_line(self, bench: Bench) -> None:
        """R14: it would, were it given only into a free slot."""
        declined = await bench.running(max_attempts=1)
        await bench.settle(declined, Move.RELEASE)
        behind = await bench.add()
        passing = frozenset({declined.seq})
        assert [job.id for job in await bench.claim(9, slots=0, passing=passing)] == [behind]

    async def test_its_deadline_counts_all_the_same(self, bench: Bench) -> None:
        """R5: passed over or not."""
        declined = await bench.running(ttl_us=SECOND)
        await bench.settle(declined, Move.RELEASE)
        await bench.runtime.advance(2)
        await bench.claim(9, passing=frozenset({declined.seq}))
        assert await bench.state(declined.id) is State.DEAD_LETTER

    async def test_who_was_overtaken_has_not_started(self, bench: Bench) -> None:
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
