"""Which jobs may wait in a worker's buffer, and which must start at once."""

from __future__ import annotations

from ropewalk.domain.jobs.quarantine import Suspects
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.limits.fleet_limit import FlowLimit
from ropewalk.domain.time import SECOND
from ropewalk.ports.store.capabilities import LIMITS
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import LEASE, new_job


class BufferContract(Contract):
    """A last attempt or a suspect is leased only if it can start at once; every other job may wait in the worker's
    buffer (safe-7).
    """

    async def test_a_last_attempt_is_given_only_into_a_free_slot(self, bench: Bench) -> None:
        last = [await bench.add(max_attempts=1) for _ in range(3)]
        assert [job.id for job in await bench.claim(3, slots=2)] == last[:2]
        assert await bench.claim(3, slots=0) == []
        assert [job.id for job in await bench.claim(3, slots=1)] == last[2:]

    async def test_an_earlier_attempt_may_wait_in_the_buffer(self, bench: Bench) -> None:
        ids = [await bench.add(max_attempts=2), await bench.add(max_attempts=None), await bench.add()]
        assert [job.id for job in await bench.claim(3, slots=0)] == ids

    async def test_an_attempt_that_becomes_the_last_one_needs_a_free_slot(self, bench: Bench) -> None:
        job = await bench.running(max_attempts=2)
        await bench.settle(job, Move.RETRY)
        assert await bench.claim(slots=0) == []
        assert (await bench.claim_one(slots=1)).attempt == 2

    async def test_a_last_attempt_without_a_slot_ends_the_claim(self, bench: Bench) -> None:
        """live-5: neither by its own line nor by others, or no slot might ever be free for it."""
        first = await bench.add(queue="q")
        last = await bench.add(queue="q", max_attempts=1)
        behind = await bench.add("a", queue="q")
        elsewhere = [await bench.add(queue="r") for _ in range(3)]
        assert [job.id for job in await bench.claim(9, slots=1)] == [first, elsewhere[0]]
        assert await bench.claim(9, slots=0) == []
        assert [job.id for job in await bench.claim(9, slots=1)] == [last, elsewhere[1], behind, elsewhere[2]]

    async def test_a_suspect_without_a_slot_ends_the_claim(self, bench: Bench) -> None:
        """live-2, live-5: while it may run here at all."""
        [suspect] = await _suspects(bench, 1, queues=("q",))
        flood = [await bench.add(queue=queue) for queue in ("q", "r", "r")]
        assert [job.id for job in await bench.claim(9, slots=0, turn=1)] == [flood[1]]
        assert [job.id for job in await bench.claim(9, slots=1)] == [suspect, flood[2], flood[0]]

    async def test_a_last_attempt_gets_its_turn_however_many_lines_have_work(self, bench: Bench) -> None:
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

    async def test_a_held_up_line_that_is_empty_by_now_is_not_served_first(self, bench: Bench) -> None:
        last = await bench.add(queue="q", max_attempts=1)
        assert (await bench.claimed(slots=0)).held_up == ("default", "q")
        assert [job.id for job in await bench.claim(owner="another")] == [last]
        others = [await bench.add(queue=queue) for queue in "pr"]
        claimed = await bench.claimed(2, turn=1, first=("default", "q"))
        assert ([job.id for job in claimed.jobs], claimed.held_up) == (others[::-1], None)

    @needs(LIMITS)
    async def test_last_attempts_that_a_limit_keeps_back_hold_up_no_other_job(self, bench: Bench) -> None:
        """live-5: no slot would help them."""
        await bench.store.put_limit(FlowLimit(tenant="default", kind="queue", name="q", concurrency=1))
        await bench.running(queue="q")
        await bench.add(queue="q", max_attempts=1)
        others = [await bench.add(queue="r") for _ in range(2)]
        assert [job.id for job in await bench.claim(9, slots=0)] == others

    async def test_after_their_first_crash_suspects_run_together(self, bench: Bench) -> None:
        """live-2: all jobs of a dead worker start again at once, where slots are free."""
        suspects = await _suspects(bench, 4)
        assert await bench.claim(9, slots=0) == [], "not into the buffer"
        assert [job.id for job in await bench.claim(9, slots=3)] == suspects[:3]
        assert [job.id for job in await bench.claim(9, suspects=Suspects(3, 9, 9))] == suspects[3:]

    async def test_a_suspect_that_the_next_crash_would_end_runs_without_others(self, bench: Bench) -> None:
        """safe-7: a killer is told from its neighbours."""
        last = await _suspects(bench, 3, max_crashes=2)
        assert await bench.claim(9, suspects=Suspects(1, 9)) == []
        assert [job.id for job in await bench.claim(9)] == last[:1]
        assert await bench.claim(9, suspects=Suspects(1, 1)) == []
        assert [job.id for job in await bench.claim(9)] == last[1:2]

    async def test_a_suspect_on_its_last_attempt_runs_without_others(self, bench: Bench) -> None:
        last = await _suspects(bench, 2, max_attempts=2)
        assert await bench.claim(9, suspects=Suspects(1, 9)) == []
        assert [job.id for job in await bench.claim(9)] == last[:1]

    async def test_a_suspect_that_must_run_without_others_is_not_overtaken_by_suspects(self, bench: Bench) -> None:
        """live-5: it gets its turn when those before it have ended."""
        first = await _suspects(bench, 2)
        [last] = await _suspects(bench, 1, max_crashes=2)
        behind = await _suspects(bench, 2)
        plain = await bench.add()
        assert [job.id for job in await bench.claim(9)] == [*first, plain]
        assert await bench.claim(9, suspects=Suspects(2, 9, 9)) == []
        assert [job.id for job in await bench.claim(9)] == [last]
        assert [job.id for job in await bench.claim(9)] == behind

    async def test_each_further_crash_halves_how_many_suspects_run_together(self, bench: Bench) -> None:
        suspects = await _suspects(bench, 8, max_crashes=9)
        for together in (4, 2, 1, 1):
            await bench.claim(8, owner="dead", suspects=Suspects())
            await bench.runtime.advance(LEASE / SECOND)
            await bench.sweep(8)
            given = await bench.claim(8, suspects=Suspects(slots=8))
            assert [job.id for job in given] == suspects[:together]
            for job in given:
                await bench.settle(job, Move.RELEASE)

    async def test_a_suspect_does_not_go_into_the_buffer(self, bench: Bench) -> None:
        [suspect] = await _suspects(bench, 1)
        urgent = await bench.add(priority=1)
        assert [job.id for job in await bench.claim(9, slots=1)] == [urgent]
        assert [job.id for job in await bench.claim(9, slots=1)] == [suspect]

    async def test_suspects_hold_up_no_other_jobs(self, bench: Bench) -> None:
        suspects = await _suspects(bench, 2, max_crashes=2)
        innocent = [await bench.add() for _ in range(3)]
        assert [job.id for job in await bench.claim(9, suspects=Suspects(1, 1), slots=9)] == innocent
        more = [await bench.add() for _ in range(2)]
        assert [job.id for job in await bench.claim(9)] == [suspects[0], *more]

    async def test_a_suspect_keeps_its_place_in_the_order(self, bench: Bench) -> None:
        [suspect] = await _suspects(bench, 1)
        urgent = await bench.add(priority=1)
        later = await bench.add(priority=-1)
        assert [job.id for job in await bench.claim(9)] == [urgent, suspect, later]

    async def test_suspects_are_counted_over_all_lines(self, bench: Bench) -> None:
        suspects = await _suspects(bench, 4, queues=("q", "r"), max_crashes=2)
        assert len(await bench.claim(9)) == 1
        assert _ids(await bench.claim(9)) <= set(suspects)

    @needs(LIMITS)
    async def test_a_suspect_that_may_not_run_now_keeps_no_other_from_running(self, bench: Bench) -> None:
        """live-5: a limit or a deadline that keeps it back has nothing to do with those behind it."""
        [held_back] = await _suspects(bench, 1, queues=("q",), max_crashes=2)
        others = await _suspects(bench, 2, queues=("r",))
        await bench.store.put_limit(FlowLimit(tenant="default", kind="queue", name="q", concurrency=0))
        assert [job.id for job in await bench.claim(9)] == others
        assert [job.id for job in await bench.claim(9, ignored=frozenset({(await bench.job(held_back)).seq}))] == []


async def _suspects(
    bench: Bench,
    number: int,
    queues: tuple[str, ...] = ("default",),
    *,
    max_attempts: int = 99,
    max_crashes: int = 3,
) -> list[str]:
    """Make jobs into suspects: submit and claim them, and lose their worker."""
    options = {"max_attempts": max_attempts, "max_crashes": max_crashes}
    ids = [await bench.add("t", queue=queues[each % len(queues)], **options) for each in range(number)]
    await bench.claim(number, owner="dead", suspects=Suspects(1, 1))
    await bench.runtime.advance(LEASE / SECOND)
    assert len(await bench.sweep(number)) == number
    return ids


def _ids(jobs: list[JobRecord]) -> set[str]:
    return {job.id for job in jobs}
