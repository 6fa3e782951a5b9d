"""Two things at once: endings that could be passed on twice, or to nobody."""

from __future__ import annotations

import pytest

from ropewalk.backends.memory.store import MemoryStore
from ropewalk.domain.jobs.operations import RetryRequest
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.errors import Conflict
from ropewalk.ports.store.operations import Deletion
from ropewalk.testing import FakeRuntime
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import chain
from ropewalk.testing.contract.workflow_bench import WorkflowBench, closed_by, node, plan
from tests.backends.test_memory import MemoryBackend


@pytest.fixture
def flow() -> WorkflowBench:
    runtime = FakeRuntime()
    return WorkflowBench(Bench(MemoryStore(runtime), runtime, MemoryBackend()))


async def test_doomed_and_cancelled_at_birth_is_one_ending(flow: WorkflowBench) -> None:
    """safe-10: whatever its policy says, it is counted once and the group goes on until its root ends."""
    await flow.submit(node("failed"), node("root"))
    await flow.end("failed", Move.FAIL)
    await flow.running("root")
    await flow.bench.store.cancel_group("default", "root", reason=None, force=False)
    await flow.spawn("root", node("runs", "failed", gate={"policy": "run"}), node("fails", "failed"))
    assert [await flow.state(name) for name in ("runs", "fails")] == [State.CANCELLED, State.CANCELLED]
    group = (await flow.bench.store.groups("default", ["root"]))["root"]
    assert (group.open, group.cancelled, group.closed_at) == (1, 2, None)
    assert closed_by(await flow.settle("root")) == ["root"]


async def test_a_job_is_either_a_child_or_the_continuation(flow: WorkflowBench) -> None:
    await flow.submit(node("root"))
    twice = node("twice")
    settled = await flow.end("root", left=plan(twice, then=twice))
    assert isinstance(settled.refused, Conflict)
    assert await flow.bench.find("twice") is None
    assert await flow.bench.status("root") is Status.RUNNING


async def test_a_chain_goes_on_without_its_first_member(flow: WorkflowBench) -> None:
    """live-3: and who waits for it by another member is told when it ends."""
    store = flow.bench.store
    await flow.submit(node("first"))
    await flow.end("first", left=plan(then=node("second")))
    await flow.end("second", Move.FAIL)
    assert await store.delete("default", ["first"]) == {"first": Deletion.DELETED}
    await store.retry("default", ["second"], RetryRequest())
    await flow.submit(node("after", chain("second")))
    await flow.end("second", left=plan(then=node("third")))
    assert await flow.state("after") is State.PENDING
    await flow.end("third")
    assert await flow.state("after") is State.SCHEDULED
    assert [job.id for job in await store.chain("default", "third")] == ["second", "third"]


async def test_a_cascade_retries_what_the_parent_doomed_and_nothing_else(flow: WorkflowBench) -> None:
    """Not what somebody cancelled before that, nor what was given up in time."""
    store = flow.bench.store
    await flow.submit(node("parent"), node("doomed", "parent"), node("dropped", "parent"))
    await flow.submit(node("given_up", "parent", gate={"timeout_us": 1}))
    await store.cancel("default", ["dropped"], reason="not needed", force=False)
    await flow.bench.runtime.advance(seconds=1)
    await store.sweep(9)
    await flow.bench.store.cancel("default", ["parent"], reason=None, force=False)
    assert await flow.state("doomed") is State.CANCELLED
    await store.retry("default", ["parent"], RetryRequest(cascade=True, include_cancelled=True))
    seen = {name: await flow.state(name) for name in ("doomed", "dropped", "given_up")}
    assert seen == {"doomed": State.PENDING, "dropped": State.CANCELLED, "given_up": State.FAILED}
