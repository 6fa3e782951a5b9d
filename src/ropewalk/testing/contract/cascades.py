"""Ends with too many dependants for one transaction, and ends that race with other calls."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from ropewalk.domain.jobs.states import Move, State
from ropewalk.domain.search import Filter
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.submission import Accepted
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import gate_on, new_job, settlement, tree
from ropewalk.testing.contract.workflow_bench import WorkflowBench, closed_by, node, plan

FAN: Final = 2500
ROUNDS: Final = 20


@needs(WORKFLOWS)
class CascadeContract(Contract):
    """Each dependant of a very large fan-out is resolved exactly once, in several bounded transactions (safe-9)."""

    @pytest.mark.parametrize(("move", "state"), [(Move.COMPLETE, State.SCHEDULED), (Move.FAIL, State.FAILED)])
    async def test_every_dependant_of_a_wide_fan_out_is_resolved(self, bench: Bench, move: Move, state: State) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), *(new_job(gate=gate_on("p")) for _ in range(FAN)), node("other"))
        ended = (await workflow.settle("p", move)).consequences
        assert ended.more
        assert await bench.store.count("default", Filter(types=("t",), states=(State.PENDING,))) >= FAN - 1000
        all_consequences = [ended, *await _cascade_all(bench)]
        assert await bench.store.count("default", Filter(types=("t",), states=(state,))) == FAN
        moved = [each.job.id for consequences in all_consequences for each in consequences.moved]
        assert len(moved) == len(set(moved)) == (FAN if move is Move.FAIL else 0)
        assert await bench.state("other") is State.SCHEDULED

    async def test_a_group_closes_once_at_the_end_of_a_cascade(self, bench: Bench) -> None:
        """Its members are doomed by one failure, in several steps."""
        workflow = WorkflowBench(bench)
        await workflow.submit(node("root"), node("after", tree("root")))
        await workflow.end("root", left=plan(node("p"), *(new_job(gate=gate_on("p")) for _ in range(FAN))))
        all_consequences = [(await workflow.settle("p", Move.FAIL)).consequences, *await _cascade_all(bench)]
        assert [closed_by(each) for each in all_consequences].count(["root"]) == 1
        assert await workflow.counts("root") == (0, 1, FAN + 1, 0)
        assert await workflow.states("after") == ["failed"]

    async def test_a_limited_cascade_step_does_no_more_than_asked(self, bench: Bench) -> None:
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), *(new_job(gate=gate_on("p")) for _ in range(1500)))
        await workflow.end("p", Move.FAIL)
        consequences = await bench.store.cascade(100)
        assert 0 < len(consequences.moved) <= 100

    async def test_a_cascade_says_whether_something_is_left(self, bench: Bench) -> None:
        """Of this fan-out or of another one."""
        workflow = WorkflowBench(bench)
        for name in ("p", "q"):
            await workflow.submit(node(name), *(new_job(gate=gate_on(name)) for _ in range(1100)))
            await workflow.end(name, Move.FAIL)
        left = 2200 - await bench.store.count("default", Filter(types=("t",), states=(State.FAILED,)))
        limits = iter([1, 1, 1])
        while left > 0:
            consequences = await bench.store.cascade(next(limits, 400))
            left -= len(consequences.moved)
            assert consequences.more or left == 0, f"{left} left, and nobody is told"

    async def test_several_workers_continue_a_cascade_together(self, bench: Bench) -> None:
        other = await bench.second()
        workflow = WorkflowBench(bench)
        await workflow.submit(node("p"), *(new_job(gate=gate_on("p")) for _ in range(FAN)))
        moved = [each.job.id for each in (await workflow.settle("p", Move.FAIL)).consequences.moved]
        for _ in range(20):
            steps = await asyncio.gather(*(each.store.cascade(100) for each in (bench, other)))
            moved += [each.job.id for step in steps for each in step.moved]
        assert len(moved) == len(set(moved)) == FAN

    async def test_a_cascade_with_nothing_left_does_nothing(self, bench: Bench) -> None:
        assert await bench.store.cascade(9) == Consequences()


@needs(WORKFLOWS)
class WorkflowRaceContract(Contract):
    """Ends, spawns and new dependants that race with each other are each applied exactly once (safe-9, safe-10)."""

    @pytest.mark.parametrize("move", [Move.COMPLETE, Move.FAIL])
    async def test_a_dependant_submitted_while_its_parent_ends_is_resolved(self, bench: Bench, move: Move) -> None:
        """The edge is never lost: it is resolved by one of the two."""
        other = await bench.second()
        workflow = WorkflowBench(bench)
        for turn in range(ROUNDS):
            parent = node(f"p{turn}")
            await workflow.submit(parent)
            job = await workflow.start(parent.id)
            asked = [
                bench.settle(job, move),
                other.submit(node(f"a{turn}", parent.id), node(f"b{turn}", tree(parent.id))),
            ]
            await asyncio.gather(*(asked if turn % 2 else asked[::-1]))
            expected = "scheduled" if move is Move.COMPLETE else "failed"
            assert await workflow.states(f"a{turn}", f"b{turn}") == [expected, expected]

    async def test_many_settlers_close_a_group_once(self, bench: Bench) -> None:
        benches = [bench, await bench.second()]
        for turn in range(5):
            workflow = WorkflowBench(bench)
            root = f"root{turn}"
            await workflow.submit(node(root))
            await workflow.spawn(root, *(node(f"{root}-{number}") for number in range(20)))
            jobs = [await workflow.running(name) for name in (root, *(f"{root}-{number}" for number in range(20)))]
            answers = await asyncio.gather(
                *(benches[n % 2].store.settle("worker", [settlement(job)]) for n, job in enumerate(jobs))
            )
            assert [name for each in answers for name in closed_by(each)] == [root]
            assert await workflow.counts(root) == (0, 21, 0, 0)

    async def test_parents_that_end_at_the_same_moment_are_all_counted(self, bench: Bench) -> None:
        benches = [bench, await bench.second()]
        workflow = WorkflowBench(bench)
        for turn in range(5):
            names = [f"p{turn}-{number}" for number in range(10)]
            await workflow.submit(*(node(name) for name in names), node(f"a{turn}", *names))
            jobs = [await workflow.running(name) for name in names]
            answers = await asyncio.gather(
                *(benches[n % 2].store.settle("worker", [settlement(job)]) for n, job in enumerate(jobs))
            )
            assert [each.consequences.ready for each in answers].count(["default"]) == 1
            assert await workflow.states(f"a{turn}") == ["scheduled"]

    async def test_one_spawn_key_used_by_two_attempts_at_once_makes_one_child(self, bench: Bench) -> None:
        other = await bench.second()
        workflow = WorkflowBench(bench)
        for turn in range(ROUNDS):
            root = node(f"root{turn}")
            await workflow.submit(root)
            job = await workflow.start(root.id)
            child = node(f"child{turn}", parent_id=root.id, spawn_key="k")
            answers: list[list[Accepted]] = await asyncio.gather(
                *(each.submit(child, under=holder(job)) for each in (bench, other))
            )
            assert sum(not accepted.duplicate for [accepted] in answers) == 1
            assert (await workflow.counts(root.id))[0] == 2


async def _cascade_all(bench: Bench) -> list[Consequences]:
    """Until nothing is left."""
    all_consequences = [await bench.store.cascade(1000)]
    while all_consequences[-1].more:
        all_consequences.append(await bench.store.cascade(1000))
        assert len(all_consequences) < 50, "it never ends"
    return all_consequences
