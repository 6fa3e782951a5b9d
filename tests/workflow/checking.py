"""Compares what became of a graph in a store with what had to."""

from __future__ import annotations

from collections import Counter

import msgspec

from ropewalk.domain.jobs.history import assemble
from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.workflow.dependency import NewGate, ParentKind, ParentRef
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.submission import Submission
from ropewalk.ports.store.workflows import GroupRecord
from ropewalk.testing import FakeRuntime
from tests.workflow.driver import Driver
from tests.workflow.evaluator import AfterRetry, Ending, Evaluation
from tests.workflow.graphs import Graph, Ref

MANY = 10_000
_BY_ENDING: dict[Ending, str] = {"completed": "scheduled", "failed": "failed", "cancelled": "cancelled"}


async def check(store: Store, runtime: FakeRuntime, graph: Graph, tenant: str) -> None:
    """Run it, and find everything as evaluated: every job, every group, every tree and chain."""
    driver = Driver(store, runtime, graph, tenant)
    await driver.begin()
    expected = Evaluation(graph).run()
    closings = Counter({root.name: 1 for root in graph.roots if _has_record(expected, root.name)})
    await _check_all(store, tenant, expected, dict.fromkeys(closings, 1))
    assert driver.closings == closings
    if graph.retried is not None:
        after = AfterRetry(expected).run()
        await driver.retry(refused=after.refused)
        roots = [root.name for root in graph.roots if _has_record(after, root.name)]
        closings.update(filter(after.closed_again, roots))
        generations = {root: 1 + (after.had_record(root) and after.closed_again(root)) for root in roots}
        expected = after
        await _check_all(store, tenant, expected, generations)
        assert driver.closings == closings
    await _check_probes(store, tenant, expected)


def _has_record(expected: Evaluation, root: str) -> bool:
    return root in expected.lives and expected.has_record(root)


async def _check_all(store: Store, tenant: str, expected: Evaluation, generations: dict[str, int]) -> None:
    page = await store.search(tenant, Filter(), order=Order.CREATED_ASC, cursor=None, limit=MANY)
    assert {job.type: job.status.value for job in page.jobs} == {n: life.status for n, life in expected.lives.items()}
    assert len(page.jobs) == len(expected.lives), "nothing came to be twice"
    for job in page.jobs:
        await _check_history(store, job)
    roots = [root.name for root in expected.graph.roots]
    groups = await WORKFLOWS.of(store).groups(tenant, roots)
    assert set(groups) == set(generations)
    for root, group in groups.items():
        assert group.generation == generations[root]
        await _check_group(store, tenant, expected, group)


async def _check_history(store: Store, job: JobRecord) -> None:
    trail = await store.history(job.tenant, job.id)
    assert trail is not None
    revisions = [entry.rev for entry in assemble(trail.job, trail.attempts, trail.events)]
    assert revisions == list(range(1, job.rev + 1)), f"safe-16: {job.id}"


async def _check_group(store: Store, tenant: str, expected: Evaluation, group: GroupRecord) -> None:
    ends = Counter(expected.lives[name].status for name in expected.group(group.id))
    counted = (group.open, group.completed, group.failed, group.cancelled)
    assert counted == (0, ends["completed"], ends["failed"] + ends["dead_letter"], ends["cancelled"]), group.id
    assert group.closed_at is not None
    value: object = None if group.value.value is None else msgspec.json.decode(group.value.value)
    if expected.graph.reducers[group.id] == "list":
        kept = await WORKFLOWS.of(store).contributions(tenant, group.id)
        value = tuple(sorted(msgspec.json.decode(each.value or b"") for each in kept)) or None
    assert value in expected.possible_values(group.id), group.id


async def _check_probes(store: Store, tenant: str, expected: Evaluation) -> None:
    """How every tree and chain ended is told by a job that waits for it."""
    undos = {node.compensation for node in expected.graph.nodes.values()}
    refs = [Ref(kind, name) for name in expected.lives if name not in undos for kind in ("job", "tree", "chain")]
    jobs = [
        NewJob(
            id=f"probe {ref}",
            type="probe",
            input=b"",
            tenant=tenant,
            gate=NewGate(parents=(ParentRef(ParentKind(ref.kind), ref.name),), need=1, of="success"),
        )
        for ref in refs
    ]
    [answer] = await store.submit([Submission(jobs=jobs)])
    assert isinstance(answer, list), answer
    told = {str(ref): accepted.state.value for ref, accepted in zip(refs, answer, strict=True)}
    assert told == {str(ref): _BY_ENDING[expected.ending(ref)] for ref in refs}
