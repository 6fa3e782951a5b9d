"""Graphs by name: a job's type is its id, so that a test starts and ends exactly the job it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.workflow.completion import CompletionPlan
from ropewalk.domain.workflow.group_value import Contribution, Reducer
from ropewalk.ports.store.claims import Claimed
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.leases import Settled, Settlements
from ropewalk.ports.store.workflows import EndAnswer, GroupRecord
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.build import BOOM, LEASE, gate_on, new_job, settlement


def node(name: str, *parents: Any, **fields: Any) -> NewJob:
    """A job called `name`; `parents` makes its gate (build.gate_on), whose options are in `gate`."""
    gate = fields.pop("gate", {})
    if parents:
        fields["gate"] = gate_on(*parents, **gate)
    return new_job(name, id=name, **fields)


def plan(
    *children: NewJob, then: NewJob | None = None, value: bytes | None = None, reducer: Reducer = "last", **more: Any
) -> CompletionPlan:
    contribution = None
    if value is not None:
        contribution = Contribution(type="t", value=value, reducer=reducer, **more)
    return CompletionPlan(children=children, continuation=then, contribution=contribution)


def closed_by(what: Consequences | Claimed | Settlements | EndAnswer) -> list[str]:
    """The ids of the groups that closed with it."""
    if isinstance(what, Settlements | EndAnswer):
        assert what.consequences is not None
        return closed_by(what.consequences)
    return [group.id for group in what.closed]


class Flow:
    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    async def submit(self, *jobs: NewJob) -> None:
        await self.bench.submit(*jobs)

    async def start(self, name: str, *, owner: str = "worker") -> JobRecord:
        return await self.bench.claim_one(types=[name], owner=owner)

    async def held(self, name: str) -> JobRecord:
        """Running: started now unless it was."""
        job = await self.bench.job(name)
        return job if job.status is Status.RUNNING else await self.start(name)

    async def spawn(self, parent: str, *children: NewJob) -> None:
        """By a running job, at once."""
        await self.bench.submit(*children, under=holder(await self.held(parent)))

    async def end(
        self, name: str, move: Move = Move.COMPLETE, left: CompletionPlan | None = None, **how: Any
    ) -> Settled:
        [settled] = (await self.ended(name, move, left, **how)).settled
        return settled

    async def ended(
        self, name: str, move: Move = Move.COMPLETE, left: CompletionPlan | None = None, **how: Any
    ) -> Settlements:
        """The same, with what followed from it."""
        job = await self.held(name)
        if move is not Move.COMPLETE:
            how.setdefault("error", BOOM)
        return await self.bench.store.settle(job.owner or "", [settlement(job, move, plan=left, **how)])

    async def end_all(self, *names: str, move: Move = Move.COMPLETE) -> None:
        for name in names:
            await self.end(name, move)

    async def lose(self, name: str) -> Consequences:
        """Its worker dies."""
        await self.held(name)
        await self.bench.runtime.advance(LEASE / 1_000_000)
        return await self.bench.store.sweep(99)

    async def state(self, name: str) -> State:
        return await self.bench.state(name)

    async def states(self, *names: str) -> list[str]:
        return [(await self.state(name)).value for name in names]

    async def group(self, name: str) -> GroupRecord:
        return (await self.bench.store.groups("default", [name]))[name]

    async def value(self, name: str) -> bytes | None:
        return (await self.group(name)).value.value

    async def counts(self, name: str) -> tuple[int, int, int, int]:
        """(open, completed, failed, cancelled) of a whole group."""
        group = await self.group(name)
        return group.open, group.completed, group.failed, group.cancelled

    async def closings(self, *steps: Sequence[Any]) -> list[list[str]]:
        """End these one after another; the groups that closed with each."""
        return [closed_by(await self.ended(*step)) for step in steps]
