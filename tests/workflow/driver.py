"""Runs a graph through a store with the verbs of the port, as several workers would: in an order drawn from a seed."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final

from ropewalk.domain.jobs.operations import UNMET_DEPENDENCIES, EndRequest, RetryRequest, RetryStatus
from ropewalk.domain.jobs.record import CompensationSpec, JobRecord, NewJob
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.domain.workflow.completion import CompletionPlan, Suspension
from ropewalk.domain.workflow.dependency import NewGate, ParentKind, ParentRef
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.errors import RopewalkError
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.claims import Claimed
from ropewalk.ports.store.consequences import Consequences
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.leases import Holder, Renewal
from ropewalk.ports.store.submission import Submission
from ropewalk.testing import FakeRuntime
from ropewalk.testing.contract.builders import BOOM, LEASE, claim_request, settlement
from tests.workflow.graphs import Attempt, Graph, Node

WORKER: Final = "worker"
STEPS_MAX: Final = 5000


class Driver:
    def __init__(self, store: Store, runtime: FakeRuntime, graph: Graph, tenant: str) -> None:
        self._store = store
        self._runtime = runtime
        self._graph = graph
        self._tenant = tenant
        self._chance = Random(graph.seed)
        self._held: list[JobRecord] = []
        self._abandoned = 0
        self._late = [node for node in graph.roots if node.late]
        self._there: set[str] = set()
        self._starts: Counter[str] = Counter()
        self._again = False
        self.closings: Counter[str] = Counter()
        """by group"""

    async def begin(self) -> None:
        """Submit the graph and run it until nothing happens any more."""
        first = [node for node in self._graph.roots if not node.late]
        if self._graph.shuffled:
            self._chance.shuffle(first)
        await self._submit(first)
        if self._graph.cancelled:
            # those that depend on others first: what is cancelled cannot be doomed by its parents
            ids = self._graph.cancelled[::-1]
            self._hear((await self._store.cancel(self._tenant, ids, reason=None, force=False)).consequences)
        await self._until_quiet()

    async def retry(self, *, refused: bool) -> None:
        name = self._graph.retried
        assert name is not None
        asked = RetryRequest(cascade=self._graph.cascade, include_cancelled=True)
        [answer] = await self._store.retry(self._tenant, [name], asked)
        if refused:
            assert (answer.status, answer.reason) == (RetryStatus.NOT_RETRIABLE, UNMET_DEPENDENCIES)
            return
        assert answer.status is RetryStatus.QUEUED, answer
        self._starts[name] = 0
        self._again = True
        await self._until_quiet()

    # ── what workers do

    async def _until_quiet(self) -> None:
        for _ in range(STEPS_MAX):
            if not await self._step():
                return
        raise AssertionError("it never becomes quiet")

    async def _step(self) -> bool:
        """Something happens; False where nothing could."""
        submitted = await self._submit_late()
        claimed = await self._claim() if not self._held or self._chance.random() < 0.5 else 0
        went_on = self._chance.random() < 0.3 and await self._cascade(self._chance.randint(1, 4))
        if self._abandoned and (not self._held or self._chance.random() < 0.1):
            await self._lose_leases()
        elif self._held:
            await self._settle_some()
        elif not claimed and not submitted and not went_on:
            return await self._cascade(1000)
        return True

    async def _cascade(self, limit: int) -> bool:
        """What was left for later; True where that was something."""
        consequences = await WORKFLOWS.of(self._store).cascade(limit)
        self._hear(consequences)
        return consequences != Consequences()

    async def _claim(self) -> int:
        asked = claim_request(
            owner=WORKER, types=self._graph.nodes, limit=self._chance.randint(1, 6), tenants=(self._tenant,)
        )
        claimed = await self._store.claim(asked)
        self._hear(claimed)
        for job in claimed.jobs:
            self._starts[job.type] += 1
        self._held += claimed.jobs
        return len(claimed.jobs)

    async def _lose_leases(self) -> None:
        """Those nobody renews are taken back, by a sweep or by the next claim."""
        await self._runtime.advance(LEASE / 1_000_000)
        renewals = [Renewal(seq=job.seq, fence=job.fence, lease_us=LEASE) for job in self._held]
        renewed = await self._store.renew(WORKER, renewals)
        assert renewed.lost == []
        self._abandoned = 0
        if self._chance.random() < 0.5:
            self._hear(await self._store.sweep(1000))

    async def _settle_some(self) -> None:
        self._chance.shuffle(self._held)
        batch, self._held = self._held[:3], self._held[3:]
        asked = [settled for job in batch if (settled := await self._perform(job)) is not None]
        answer = await self._store.settle(WORKER, asked)
        assert all(each.lost is None and each.refused is None for each in answer.settled), answer.settled
        self._hear(answer.consequences)

    async def _perform(self, job: JobRecord) -> Settlement | None:
        """One attempt of its script; None where it leaves nothing to settle."""
        node = self._graph.nodes[job.type]
        script = node.rerun if self._again and node.name == self._graph.retried else node.attempts
        number = self._starts[node.name] - 1
        attempt = script[min(number, len(script) - 1)]
        await self._spawn(job, [name for each in script[: number + 1] for name in each.spawns], attempt)
        match attempt.end:
            case "ok":
                self._there.update(attempt.queues, [attempt.then] if attempt.then else [])
                return settlement(job, result=b"1", plan=self._plan(node, attempt))
            case "error":
                exhausted = job.max_attempts is not None and job.attempt >= job.max_attempts
                return settlement(job, Move.BURY if exhausted else Move.RETRY, error=BOOM)
            case "abort":
                return settlement(job, Move.FAIL, error=BOOM)
            case "nap":
                return settlement(job, Move.SUSPEND, suspension=Suspension(position=number, name="nap", span_us=0))
            case "stop":
                self._hear((await self._store.cancel(self._tenant, [job.id], reason=None, force=False)).consequences)
                return settlement(job, Move.RETRY, error=BOOM)
            case "crash":
                self._abandoned += 1
                return None
            case "resolved" | "resolved_failed":
                error = BOOM if attempt.end == "resolved_failed" else None
                answer = await WORKFLOWS.of(self._store).end(self._tenant, job.id, EndRequest(error=error))
                assert answer.consequences is not None
                self._hear(answer.consequences)
                return None

    async def _spawn(self, job: JobRecord, ever: list[str], attempt: Attempt) -> None:
        """What this attempt spawns, and now and then what an earlier one did, again."""
        names = ever if self._chance.random() < 0.5 else list(attempt.spawns)
        if names:
            under = Holder(seq=job.seq, fence=job.fence, owner=WORKER)
            await self._submit([self._graph.nodes[name] for name in names], under)

    # ── what is submitted

    async def _submit_late(self) -> int:
        """Roots that waited for their parents to be there."""
        possible = [
            node for node in self._late if node.gate and all(ref.name in self._there for ref in node.gate.parents)
        ]
        if not possible or (self._held and self._chance.random() < 0.7):
            return 0
        await self._submit(possible)
        self._late = [node for node in self._late if node not in possible]
        return len(possible)

    async def _submit(self, nodes: list[Node], under: Holder | None = None) -> None:
        jobs = [self._new(node) for node in nodes]
        [answer] = await self._store.submit([Submission(jobs=jobs, under=under)])
        if isinstance(answer, RopewalkError):
            raise answer
        self._there.update(node.name for node in nodes)

    def _new(self, node: Node) -> NewJob:
        undo = node.compensation
        spawned = node.owner is not None and not node.continues
        return NewJob(
            id=node.name,
            type=node.name,
            input=b"{}",
            tenant=self._tenant,
            max_attempts=node.max_attempts,
            max_crashes=node.max_crashes,
            gate=new_gate(node),
            parent_id=node.owner,
            spawn_key=node.name if spawned else None,
            on_failure=None if undo is None else CompensationSpec(type=undo, max_attempts=3, max_crashes=2),
        )

    def _plan(self, node: Node, attempt: Attempt) -> CompletionPlan:
        contribution = None
        if attempt.value is not None:
            reducer = self._graph.reducers[self._graph.root_of(node.name)]
            contribution = Contribution(type=node.name, value=str(attempt.value).encode(), reducer=reducer)
        return CompletionPlan(
            children=tuple(self._new(self._graph.nodes[name]) for name in attempt.queues),
            continuation=None if attempt.then is None else self._new(self._graph.nodes[attempt.then]),
            contribution=contribution,
        )

    def _hear(self, what: Consequences | Claimed) -> None:
        self.closings.update(group.id for group in what.closed if group.tenant == self._tenant)


def new_gate(node: Node) -> NewGate | None:
    gate = node.gate
    if gate is None:
        return None
    parents = tuple(ParentRef(ParentKind(ref.kind), ref.name) for ref in gate.parents)
    return NewGate(parents=parents, need=gate.need, of=gate.of, policy=gate.policy)
