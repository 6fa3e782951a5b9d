"""What may wait in a worker's buffer, and what must start at once."""

from __future__ import annotations

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.limits.fleet_limit import FlowLimit
from ropewalk.domain.time import SECOND
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.build import LEASE, new_job


class BufferContract(Contract):
    """storage.md, buffer and poison: what may wait in a worker's buffer, and what must start at once."""

    async def test_a_last_attempt_is_given_only_into_a_free_slot(self, bench: Bench) -> None:
        last = [await bench.add(max_attempts=1) for _ in range(3)]
        assert [job.id for job in await bench.claim(3, slots=2)] == last[:2]
        assert await bench.claim(3, slots=0) == []
        assert [job.id for job in await bench.claim(3, slots=1)] == last[2:]

    async def test_an_earlier_attempt_may_wait_in_the_buffer(self, bench: Bench) -> None:
        ids = [await bench.add(max_attempts=2), await bench.add(max_attempts=None), await bench.add()]
        assert [job.id for job in await bench.claim(3, slots=0)] == ids

    async def test_a_later_attempt_becomes_a_last_one(self, bench: Bench) -> None:
        job = await bench.running(max_attempts=2)
        await bench.settle(job, Move.RETRY)
        assert await bench.claim(slots=0) == []
        assert (await bench.claim_one(slots=1)).attempt == 2

    async def test_a_last_attempt_is_never_skipped_over(self, bench: Bench) -> None:
        """live-5: neither by its own line nor by others, or no slot might ever be free for it."""
        first = await bench.add(queue="q")
        last = await bench.add(queue="q", max_attempts=1)
        behind = await bench.add("a", queue="q")
        elsewhere = [await bench.add(queue="r") for _ in range(3)]
        assert [job.id for job in await bench.claim(9, slots=1)] == [first, elsewhere[0]]
        assert await bench.claim(9, slots=0) == []
        assert [job.id for job in await bench.claim(9, slots=1)] == [last, elsewhere[1], behind, elsewhere[2]]

    async def test_nor_is_a_suspect(self, bench: Bench) -> None:
        """live-2, live-5: while it may run here at all."""
        [suspect] = await _suspects(bench, 1, queues=("q",))
        flood = [await bench.add(queue=queue) for queue in ("q", "r", "r")]
        assert [job.id for job in await bench.claim(9, slots=0, turn=1)] == [flood[1]]
        assert [job.id for job in await bench.claim(9, slots=1)] == [suspect, flood[2], flood[0]]

    async def test_however_many_lines_have_work_it_gets_its_turn(self, bench: Bench) -> None:
        """live-5: a busy worker that has now and then one slot free, and would take many more. Each claim goes on where
        the one before was held up, so that the turns are exactly those of one long claim."""
        for queue, max_attempts in (("a", 3), ("b", 1), ("c", 3), ("d", 3), ("e", 1)):
            await bench.submit(*(new_job(queue=queue, max_attempts=max_attempts) for _ in range(8)))
        given: list[str] = []
        held_up = None
        for turn in range(16):
            claimed = await bench.claimed(40, slots=1, turn=turn, first=held_up)
            given += [job.queue for job in claimed.jobs]
            held_up = claimed.held_up
            assert held_up is not None and held_up[1] in {"b", "e"}
        assert "".join(given).startswith("abcde" * 7)

    async def test_a_line_that_has_nothing_any_more_is_not_first(self, bench: Bench) -> None:
        last = await bench.add(queue="q", max_attempts=1)
        assert (await bench.claimed(slots=0)).held_up == ("default", "q")
        assert [job.id for job in await bench.claim(owner="another")] == [last]
        others = [await bench.add(queue=queue) for queue in "pr"]
        claimed = await bench.claimed(2, turn=1, first=("default", "q"))
        assert ([job.id for job in claimed.jobs], claimed.held_up) == (others[::-1], None)

    async def test_those_that_a_limit_keeps_back_hold_up_nobody(self, bench: Bench) -> None:
        """live-5: no slot would help them."""
        await bench.store.put_limit(FlowLimit(tenant="default", kind="queue", name="q", concurrency=1))
        await bench.running(queue="q")
        await bench.add(queue="q", max_attempts=1)
        others = [await bench.add(queue="r") for _ in range(2)]
        assert [job.id for job in await bench.claim(9, slots=0)] == others

    async def test_one_suspect_at_a_time_and_only_into_a_slot(self, bench: Bench) -> None:
        """R20: a killer is told from its neighbours."""
        suspects = await _suspects(bench, 3)
        assert await bench.claim(9, slots=0) == [], "not into the buffer"
        assert await bench.claim(9, suspect_allowed=False) == []
        assert [job.id for job in await bench.claim(9)] == suspects[:1]
        assert [job.id for job in await bench.claim(9)] == suspects[1:2]

    async def test_a_suspect_does_not_go_into_the_buffer(self, bench: Bench) -> None:
        [suspect] = await _suspects(bench, 1)
        urgent = await bench.add(priority=1)
        assert [job.id for job in await bench.claim(9, slots=1)] == [urgent]
        assert [job.id for job in await bench.claim(9, slots=1)] == [suspect]

    async def test_suspects_never_stand_in_front_of_the_others(self, bench: Bench) -> None:
        suspects = await _suspects(bench, 2)
        innocent = [await bench.add() for _ in range(3)]
        assert [job.id for job in await bench.claim(9, suspect_allowed=False, slots=9)] == innocent
        more = [await bench.add() for _ in range(2)]
        assert [job.id for job in await bench.claim(9)] == [suspects[0], *more]

    async def test_a_suspect_keeps_its_place_in_the_order(self, bench: Bench) -> None:
        [suspect] = await _suspects(bench, 1)
        urgent = await bench.add(priority=1)
        later = await bench.add(priority=-1)
        assert [job.id for job in await bench.claim(9)] == [urgent, suspect, later]

    async def test_one_suspect_over_all_lines(self, bench: Bench) -> None:
        suspects = await _suspects(bench, 2, queues=("q", "r"))
        assert len(await bench.claim(9)) == 1
        assert _ids(await bench.claim(9)) <= set(suspects)


async def _suspects(bench: Bench, number: int, queues: tuple[str, ...] = ("default",)) -> list[str]:
    """Jobs whose worker was lost once, in order of submission."""
    ids = [await bench.add(queue=queues[each % len(queues)], max_attempts=None) for each in range(number)]
    await bench.claim(number, owner="dead")
    await bench.runtime.advance(LEASE / SECOND)
    assert len(await bench.sweep(number)) == number
    return ids


def _ids(jobs: list[JobRecord]) -> set[str]:
    return {job.id for job in jobs}
