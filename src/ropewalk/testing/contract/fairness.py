"""The exact order in which a backlog is given out: lines take turns, and age makes up for priority."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import pytest

from ropewalk.domain.jobs.order import AGEING_STEP, TenantQueue
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import MINUTE, SECOND, Instant
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract.base import Contract
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import new_job

T = TypeVar("T")
Ranked: TypeAlias = tuple[tuple[int, Instant], int, str]
"""A ready job as its order key, its number and its id."""

TENANTS: Final = ("acme", "beta", "zeta")
BACKLOG: Final = 60


class TurnContract(Contract):
    """Claims take one job from each line in turn, and from each line by age and priority (R12, live-5)."""

    @pytest.mark.parametrize("seed", range(8))
    @pytest.mark.parametrize("strict_order", [False, True])
    async def test_any_backlog_is_given_out_in_the_order_of_the_rule(
        self, bench: Bench, seed: int, *, strict_order: bool
    ) -> None:
        """R12, S3, live-5: whatever waits, whoever asks for how many, whosever turn it is."""
        chance = FakeRuntime(seed=seed)
        backlog: dict[TenantQueue, list[Ranked]] = {}
        for number in range(BACKLOG):
            fields = _drawn(chance)
            fields["limit_key"] = bench.limit_key(fields["limit_key"])
            run_at = bench.runtime.now() + fields["delay_us"]
            job_id = await bench.add(strict_order=strict_order, **fields)
            rank = (-fields["priority"], run_at) if strict_order else (0, run_at - fields["priority"] * AGEING_STEP)
            backlog.setdefault((fields["tenant"], fields["queue"]), []).append((rank, number, job_id))
            await bench.runtime.advance(_one_of(chance, (0.0, 0.000_001, 36.0, 50.0)))
        await bench.runtime.advance(300)
        while any(backlog.values()):
            turn, limit = _one_of(chance, range(20)), _one_of(chance, range(1, 10))
            jobs = await bench.claim(limit, turn=turn)
            expected = _in_turn(backlog, turn)[:limit]
            assert [job.id for job in jobs] == expected
            await _go_on(bench, jobs)
            backlog = {line: [job for job in jobs if job[2] not in expected] for line, jobs in backlog.items()}

    async def test_while_all_have_work_every_claim_serves_all_alike(self, bench: Bench) -> None:
        """R12, live-5: one tenant with a flood, nine with a few: each gets a tenth, claim by claim."""
        await bench.submit(*(new_job(tenant="flood", priority=1000) for _ in range(400)))
        small = [f"small-{number}" for number in range(9)]
        await bench.submit(*(new_job(tenant=tenant) for tenant in small for _ in range(6)))
        everybody = sorted(["flood", *small])
        for turn in range(3):
            jobs = await bench.claim(20, turn=turn)
            assert sorted(job.tenant for job in jobs) == sorted(everybody * 2)
            assert [job.tenant for job in jobs[:10]] == everybody[turn:] + everybody[:turn]
        assert {job.tenant for job in await bench.claim(20)} == {"flood"}

    async def test_claims_of_one_job_serve_the_lines_in_turn(self, bench: Bench) -> None:
        """R12, live-5: nobody waits longer than the others take turns."""
        await bench.submit(*(new_job(tenant=tenant) for tenant in TENANTS for _ in range(9)))
        given = [(await bench.claim_one(turn=turn)).tenant for turn in range(12)]
        assert given == [*TENANTS] * 4


class AgeingContract(Contract):
    """One point of priority is worth 36 s of age, exactly to the microsecond (S3, live-5)."""

    @pytest.mark.parametrize(("low", "high"), [(0, 1), (-100, 0), (-3, 4), (-1000, 1000)])
    @pytest.mark.parametrize("late_us", [-1, 0, 1])
    async def test_age_overtakes_priority_at_exactly_the_stated_time(
        self, bench: Bench, low: int, high: int, late_us: int
    ) -> None:
        """S3, live-5: a microsecond before, the higher goes first; at the point itself the older does."""
        older = await bench.add(priority=low)
        wait_us = (high - low) * AGEING_STEP + late_us
        await bench.runtime.advance(seconds=wait_us // SECOND)
        await bench.runtime.advance(seconds=(wait_us % SECOND) / SECOND)
        newer = await bench.add("a", priority=high)
        expected = [newer, older] if late_us < 0 else [older, newer]
        assert [job.id for job in await bench.claim(2)] == expected

    @pytest.mark.parametrize(("strict_order", "after"), [(False, 15), (True, None)])
    async def test_jobs_of_higher_priority_delay_others_for_a_bounded_time(
        self, bench: Bench, *, strict_order: bool, after: int | None
    ) -> None:
        """S3, live-5: ten points, so ten times 36 s of what comes meanwhile go first. Without ageing, all of it."""
        low = await bench.add(priority=-10, strict_order=strict_order)
        for claim in range(20):
            await bench.submit(*(new_job(strict_order=strict_order) for _ in range(3)))
            jobs = await bench.claim(2)
            if low in {job.id for job in jobs}:
                assert claim == after
                return
            for job in jobs:
                await bench.settle(job)
            await bench.runtime.advance(AGEING_STEP / SECOND)
        assert after is None


async def _go_on(bench: Bench, jobs: Sequence[JobRecord]) -> None:
    """Let time pass, because a store under load may use what an earlier claim saw for some seconds."""
    for job in jobs:
        await bench.settle(job)
    await bench.runtime.advance(20)


def _drawn(chance: FakeRuntime) -> dict[str, Any]:
    return {
        "type": _one_of(chance, ("t", "a", "b")),
        "tenant": _one_of(chance, TENANTS),
        "queue": _one_of(chance, ("mail", "maps")),
        "priority": _one_of(chance, (-3, -1, 0, 0, 1, 2)),
        "delay_us": _one_of(chance, (0, 0, 0, 1, MINUTE)),
        "limit_key": _one_of(chance, (None, None, "k", "l")),
    }


def _one_of(chance: FakeRuntime, options: Sequence[T]) -> T:
    return options[int(chance.random() * len(options))]


def _in_turn(backlog: Mapping[TenantQueue, Sequence[Ranked]], turn: int) -> list[str]:
    """Return the ids in the order of the rule: one job of each line in turn, lines by name, beginning with `turn`."""
    lines = [[job_id for _, _, job_id in sorted(jobs)] for _, jobs in sorted(backlog.items()) if jobs]
    first = turn % len(lines)
    lines = lines[first:] + lines[:first]
    rounds = max(map(len, lines))
    return [line[place] for place in range(rounds) for line in lines if place < len(line)]
