"""The in-memory store keeps the contract."""

from __future__ import annotations

from collections.abc import Sized

import pytest

from ropewalk.backends.memory.lanes import Entry, JobHeap
from ropewalk.backends.memory.store import MemoryStore
from ropewalk.domain.jobs.operations import UpdateRequest
from ropewalk.domain.jobs.record import CompensationSpec
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.retention import Retention
from ropewalk.domain.time import DAY, HOUR
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import COMPLETE
from ropewalk.ports.store.core import Durability, Store
from ropewalk.testing import FakeRuntime, contract
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import BOOM, chain, keyed, new_job, tree
from ropewalk.testing.contract.workflow_bench import WorkflowBench, node, plan


class MemoryBackend(contract.Backend):
    def __init__(self) -> None:
        self._store: MemoryStore | None = None

    async def open(self, runtime: Runtime) -> Store:
        if self._store is None:
            self._store = MemoryStore(runtime)
        return self._store

    async def close(self) -> None:
        self._store = None

    async def raise_epoch(self, store: Store, epoch: int) -> None:
        assert isinstance(store, MemoryStore)
        store._tables.epoch = epoch

    async def set_format(self, store: Store, tenant: str, job_id: str, version: int) -> None:
        assert isinstance(store, MemoryStore)
        tables = store._tables
        job = tables.find(tenant, job_id)
        assert job is not None
        tables.take_up(job)
        job.format = version
        job.rev += 1
        tables.put_back(job, await store.clock())


class TestMemory(contract.StoreContract):
    capabilities = COMPLETE

    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()


@pytest.mark.drawn
@pytest.mark.timeout(600)  # thousands of steps, one after the other
class TestMemoryAgainstItself(contract.differential(MemoryBackend)):  # type: ignore[misc] # no checker follows a class that a call makes
    """Random lives: the model keeps its own promises."""


@pytest.fixture
async def bench() -> Bench:
    runtime, backend = FakeRuntime(), MemoryBackend()
    return Bench(await backend.open(runtime), runtime, backend)


def held_by(bench: Bench) -> dict[str, int]:
    """Everything in the store that is not empty, and how much is in it."""
    assert isinstance(bench.store, MemoryStore)
    tables = bench.store._tables
    parts = [tables, *(part for part in vars(tables).values() if hasattr(part, "__dict__"))]
    return {
        name: len(value)
        for part in parts
        for name, value in vars(part).items()
        if isinstance(value, Sized) and len(value)
    }


async def test_it_promises_nothing_beyond_the_process(bench: Bench) -> None:
    """B6: and closing forgets nothing within it."""
    assert bench.store.durability is Durability.D0
    job_id = await bench.add()
    await bench.store.close()
    await bench.store.open()
    assert (await bench.claim_one()).id == job_id


async def test_what_is_over_takes_no_room(bench: Bench) -> None:
    """live-8: after drain and retention everything is as at the beginning."""
    for number in range(40):
        await bench.submit(
            keyed(
                f"k{number}",
                ttl_us=HOUR,
                on_failure=CompensationSpec(type="undo"),
                parent_id="p",
                spawn_key=f"s{number}",
            )
        )
    for job in await bench.claim(30):
        await bench.settle(job, (Move.COMPLETE, Move.FAIL, Move.RETRY)[job.seq % 3], result=b"1", error=BOOM)
    for job in await bench.claim(20, types=["undo"]):
        await bench.settle(job)
    await bench.runtime.advance(days=2)
    await bench.sweep(100)
    for job in await bench.claim(40, types=["undo"]):
        await bench.settle(job)
    await bench.store.once("default", "k", HOUR)
    await bench.runtime.advance(days=99)
    await bench.store.prune(Retention(), 1000)
    await bench.store.fold_counters(DAY, 1000)
    await bench.claim()
    assert held_by(bench) == {}


async def test_a_workflow_that_is_over_takes_no_room(bench: Bench) -> None:
    """live-8: neither do edges, scopes, contributions, steps, signals, chains and what was left for later."""
    flow = WorkflowBench(bench)
    await flow.submit(node("root", report_orphan=True), node("after", tree("root"), chain("root"), "root"))
    await flow.submit(
        node("later", delay_us=4 * HOUR),
        node("given_up", "later", "missing", gate={"allow_missing": True, "timeout_us": HOUR}),
    )
    root = await flow.running("root")
    await bench.store.record_step(holder(root), StepRecord(position=0, name="s", kind="step"))
    await bench.store.signal("default", "root", "hello", b"1")
    await flow.end("root", left=plan(node("child"), then=node("next"), value=b"1", reducer="list"))
    await flow.end(
        "child", left=plan(node("inner", on_failure=CompensationSpec(type="undo")), value=b"2", reducer="list")
    )
    await flow.end("inner", Move.FAIL)
    await flow.end("next")
    assert {"_of_child", "contributions", "continuations", "_signals", "_steps", "scopes"} <= held_by(bench).keys()
    for _ in range(3):
        for job in await bench.claim(9, types=["undo", "after", "later"]):
            await bench.settle(job)
        await bench.runtime.advance(hours=2)
        await bench.sweep(100)
    [orphan] = await bench.store.take_orphans(9, HOUR)
    await bench.store.orphan_reported(orphan.id)
    await bench.runtime.advance(days=99)
    await bench.store.prune(Retention(), 1000)
    await bench.store.fold_counters(DAY, 1000)
    assert held_by(bench) == {}


async def test_jobs_that_left_from_the_middle_take_no_room(bench: Bench) -> None:
    """live-8: cancelled and updated jobs are not kept until their time comes."""
    ids = [
        accepted.id for accepted in await bench.submit(*(new_job(delay_us=HOUR, ttl_us=2 * HOUR) for _ in range(500)))
    ]
    for _ in range(20):
        await bench.store.update("default", ids[0], UpdateRequest(priority=1))
    await bench.store.cancel("default", ids[1:], reason=None, force=False)
    assert isinstance(bench.store, MemoryStore)
    lanes = bench.store._tables.lanes
    [lane] = lanes._lanes["t"].values()
    assert len(lane.due) < 100
    assert len(lanes._deadlines) < 100
    await bench.runtime.advance(hours=1)
    assert [job.id for job in await bench.claim(9)] == ids[:1]


async def test_a_claim_costs_what_it_gives(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """R2: not what is finished, delayed, paused or of another type."""
    looks = 0
    peek = JobHeap.peek

    def counted(heap: JobHeap) -> Entry | None:
        nonlocal looks
        looks += 1
        return peek(heap)

    async def cost() -> int:
        nonlocal looks
        looks = 0
        assert len(await bench.claim(5)) == 5
        return looks

    monkeypatch.setattr(JobHeap, "peek", counted)
    await bench.submit(*(new_job() for _ in range(5)))
    alone = await cost()
    await bench.submit(*(new_job() for _ in range(300)))
    for job in await bench.claim(300):
        await bench.settle(job)
    await bench.store.pause("default", "paused", paused=True)
    await bench.submit(*(new_job(delay_us=HOUR, priority=9) for _ in range(300)))
    await bench.submit(*(new_job("other", priority=9) for _ in range(300)))
    await bench.submit(*(new_job(queue="paused", priority=9) for _ in range(300)))
    await bench.submit(*(new_job() for _ in range(5)))
    assert await cost() == alone
