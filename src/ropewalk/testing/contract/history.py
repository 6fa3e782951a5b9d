"""The recorded history of jobs."""

from __future__ import annotations

import pytest

from ropewalk.domain.jobs.history import HistoryEntry
from ropewalk.domain.jobs.operations import RetryRequest, UpdateRequest
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import SETTLING, Move
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import BOOM, worker_card


class HistoryContract(Contract):
    """Every change of a job is one numbered entry of its history (safe-16)."""

    async def test_the_history_of_a_plain_job_follows_from_its_record(self, bench: Bench) -> None:
        """safe-16: no rows are stored for it."""
        job = await bench.finished(owner="me")
        trail = await bench.stored_history(job.id)
        assert (trail.attempts, trail.events, trail.now) == ([], [], bench.runtime.now())
        assert [(entry.kind, entry.worker) for entry in await bench.history(job.id)] == [
            ("queued", None),
            ("started", "me"),
            ("complete", "me"),
        ]

    async def test_history_names_a_worker_that_is_gone(self, bench: Bench) -> None:
        """O5: its name is the job's, not looked up."""
        await bench.store.register(worker_card("me"))
        job = await bench.finished(owner="me")
        await bench.store.unregister("me")
        assert (await bench.job(job.id)).owner == "me"
        assert (await bench.history(job.id))[-1].worker == "me"

    async def test_history_names_every_attempt_and_every_act_of_an_operator(self, bench: Bench) -> None:
        """O5: every attempt with its worker, times and error; every act of an operator with its reason."""
        job_id = await bench.add(delay_us=HOUR, max_attempts=None)
        await bench.store.update("default", job_id, UpdateRequest(run_now=True))
        await bench.settle(await bench.claim_one(owner="one"), Move.RETRY, error=BOOM)
        await bench.claim_one(owner="two")
        await bench.runtime.advance(60)
        await bench.sweep(9)
        held = await bench.claim_one(owner="three")
        await bench.store.cancel("default", [job_id], reason="enough", force=False)
        await bench.settle(held, Move.RETRY)
        await bench.store.retry("default", [job_id], RetryRequest(include_cancelled=True))
        await bench.settle(await bench.claim_one(owner="four"))
        history = await bench.history(job_id)
        assert [entry.rev for entry in history] == list(range(1, len(history) + 1))
        assert [(entry.kind, entry.worker, entry.reason) for entry in history] == [
            ("queued", None, None),
            ("triggered", None, None),
            ("started", "one", None),
            ("retry", "one", "boom"),
            ("started", "two", None),
            ("lose", "two", "the worker running this attempt was lost"),
            ("started", "three", None),
            ("cancel_requested", None, "enough"),
            ("cancel", "three", None),
            ("retried", None, None),
            ("started", "four", None),
            ("complete", "four", None),
        ]
        attempts = (await bench.stored_history(job_id)).attempts
        assert [(each.run, each.attempt, each.move) for each in attempts] == [
            (1, 1, Move.RETRY),
            (1, 2, Move.LOSE),
            (1, 3, Move.CANCEL),
        ]
        assert [each.fence for each in attempts] == sorted({each.fence for each in attempts})

    async def test_a_missing_job_has_no_history(self, bench: Bench) -> None:
        assert await bench.store.history("default", "missing") is None


class RandomLifeContract(Contract):
    """History has no gap and the bounds on attempts and crashes hold, whatever happens in whatever order (safe-16,
    safe-7).
    """

    @pytest.mark.parametrize("seed", range(12))
    async def test_history_has_no_gap_and_budgets_hold(self, bench: Bench, seed: int) -> None:
        chance = FakeRuntime(seed=seed)
        job_id = await bench.add(max_attempts=4, max_crashes=2, ttl_us=2 * HOUR)
        held: JobRecord | None = None
        told: list[HistoryEntry] = []
        for _ in range(60):
            held = await random_step(bench, job_id, held, chance)
            job = await bench.job(job_id)
            history = await bench.history(job_id)
            assert [entry.rev for entry in history] == list(range(1, job.rev + 1))
            assert [entry.at for entry in history] == sorted(entry.at for entry in history)
            assert [entry.kind for entry in history][: len(told)] == [entry.kind for entry in told], "append-only"
            assert 0 <= job.attempt <= 4
            assert 0 <= job.crashes <= 2
            told = history


async def random_step(bench: Bench, job_id: str, held: JobRecord | None, chance: FakeRuntime) -> JobRecord | None:
    """Make one random change to the job, and return the record of its newest lease."""
    await bench.runtime.advance(chance.random() * 5)
    match int(chance.random() * 12):
        case 0:
            await bench.store.cancel("default", [job_id], reason="r", force=chance.random() < 0.5)
        case 1 | 2:
            await bench.store.retry("default", [job_id], RetryRequest(include_cancelled=True))
        case 3:
            await bench.store.update("default", job_id, UpdateRequest(run_now=True))
        case 4:
            await bench.runtime.advance(60)
            await bench.sweep(9)
        case 5 | 6 | 7 if held is not None:
            move = list(SETTLING)[int(chance.random() * len(SETTLING))]
            if move is Move.RETRY and held.attempt >= 4:
                move = Move.BURY  # as domain.jobs.transition.decide would: the budget is the worker's to respect
            await bench.settle(held, move, error=BOOM, delay_us=SECOND)
        case _:
            for job in await bench.claim():
                return job
    return held
