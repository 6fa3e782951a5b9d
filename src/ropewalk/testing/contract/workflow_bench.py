"""A bench for jobs that depend on each other: the type of each job is its id, so a test names the job it starts."""

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
from ropewalk.testing.contract.builders import BOOM, LEASE, gate_on, new_job, settlement


def node(name: str, *parents: Any, **fields: Any) -> NewJob:
    """Build a job whose id and type are `name`; with `parents` it gets a gate, whose other options are in `gate`."""
    gate = fields.pop("gate", {})
    if parents:
        fields["gate"] = gate_on(*parents, **gate)
    return new_job(name, id=name, **fields)


def plan(
    *children: NewJob, then: NewJob | None = None, value: bytes | None = None, reducer: Reducer = "last", **more: Any
) -> CompletionPlan:
    """Build what a job leaves with its completion: children, a continuation, and a contribution to its group."""
    contribution = None
    if value is not None:
        contribution = Contribution(type="t", value=value, reducer=reducer, **more)
    return CompletionPlan(children=children, continuation=then, contribution=contribution)


def closed_by(what: Consequences | Claimed | Settlements | EndAnswer) -> list[str]:
    """Return the ids of the groups that closed according to this answer of the store."""
    if isinstance(what, Settlements | EndAnswer):
        assert what.consequences is not None
        return closed_by(what.consequences)
    return [group.id for group in what.closed]


class WorkflowBench:
    """A bench whose jobs are made by `node`, so that each is started and ended by its name."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    async def submit(self, *jobs: NewJob) -> None:
        """Submit these jobs in one submission."""
        await self.bench.submit(*jobs)

    async def start(self, name: str, *, owner: str = "worker") -> JobRecord:
        """Claim the job of this name, which must be ready."""
        return await self.bench.claim_one(types=[name], owner=owner)

    async def running(self, name: str) -> JobRecord:
        """Return the running job of this name, and start it first if it is not running."""
        job = await self.bench.job(name)
        return job if job.status is Status.RUNNING else await self.start(name)

    async def spawn(self, parent: str, *children: NewJob) -> None:
        """Spawn children from the running job `parent`, which is started if necessary."""
        await self.bench.submit(*children, under=holder(await self.running(parent)))

    async def end(
        self, name: str, move: Move = Move.COMPLETE, left: CompletionPlan | None = None, **how: Any
    ) -> Settled:
        """End the job of this name, which is started if necessary, and return the answer about it."""
        [settled] = (await self.settle(name, move, left, **how)).settled
        return settled

    async def settle(
        self, name: str, move: Move = Move.COMPLETE, left: CompletionPlan | None = None, **how: Any
    ) -> Settlements:
        """End the job of this name as `end` does, and return the whole answer with its consequences."""
        job = await self.running(name)
        if move is not Move.COMPLETE:
            how.setdefault("error", BOOM)
        return await self.bench.store.settle(job.owner or "", [settlement(job, move, plan=left, **how)])

    async def end_all(self, *names: str, move: Move = Move.COMPLETE) -> None:
        """End these jobs, one after another."""
        for name in names:
            await self.end(name, move)

    async def lose(self, name: str) -> Consequences:
        """Let the lease of this job expire, as if its worker had died, and sweep."""
        await self.running(name)
        await self.bench.runtime.advance(LEASE / 1_000_000)
        return await self.bench.store.sweep(99)

    async def state(self, name: str) -> State:
        """Return the state of one job."""
        return await self.bench.state(name)

    async def states(self, *names: str) -> list[str]:
        """Return the words for the states of these jobs."""
        return [(await self.state(name)).value for name in names]

    async def group(self, name: str) -> GroupRecord:
        """Return the record of the group whose root is this job."""
        return (await self.bench.store.groups("default", [name]))[name]

    async def value(self, name: str) -> bytes | None:
        """Return the value of the group whose root is this job."""
        return (await self.group(name)).value.value

    async def counts(self, name: str) -> tuple[int, int, int, int]:
        """Return how many jobs of a group are open, completed, failed and cancelled."""
        group = await self.group(name)
        return group.open, group.completed, group.failed, group.cancelled

    async def closings(self, *steps: Sequence[Any]) -> list[list[str]]:
        """Settle one after another with these arguments of `settle`, and return the groups that each of them closed."""
        return [closed_by(await self.settle(*step)) for step in steps]
