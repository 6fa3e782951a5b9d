"""D6: what a handler sees of its job, and what it may say and ask."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from datetime import UTC, date, datetime
from typing import Any

import pytest

from ropewalk.definitions.context.attempt_port import Cancellation
from ropewalk.definitions.context.context import Context, activate, current, deactivate
from ropewalk.definitions.job_types.decorator import job
from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.lease import LossReason
from ropewalk.domain.jobs.record import CompensatedJob, JobRecord, NewJob, new_record
from ropewalk.domain.jobs.states import State
from ropewalk.domain.jobs.transition import claim
from ropewalk.domain.time import SECOND
from ropewalk.errors import InvalidInput, JobCancelled
from tests.definitions.ports import FakeAttempt

NOW = 1_800_000_000 * SECOND
OOPS = ErrorInfo(category=Category.PERMANENT, message="oops")


@job
async def add(a: int, b: int) -> int: ...


def record(**fields: Any) -> JobRecord:
    new = NewJob(**{"id": "j1", "type": "add", "input": b'{"a":1,"b":2}', **fields})
    job = new_record(new, seq=1, now=NOW)
    claim(job, owner="w", ticket=1, epoch=0, lease_us=SECOND, now=NOW)
    return job


@pytest.fixture
def port() -> FakeAttempt:
    return FakeAttempt(record(), add)


def test_what_it_is() -> None:
    fields: dict[str, Any] = {
        "tenant": "acme",
        "queue": "q",
        "correlation_id": "c",
        "workflow_id": "w",
        "max_attempts": 5,
    }
    ctx = Context(
        FakeAttempt(record(deadline=NOW + SECOND, tags={"k": "v"}, parent_id="p", group_id="g", **fields), add)
    )
    assert (ctx.id, ctx.type, ctx.attempt, ctx.max_attempts, ctx.run) == ("j1", "add", 1, 5, 1)
    assert (ctx.group_id, ctx.parent, ctx.tenant, ctx.queue_name) == ("g", "p", "acme", "q")
    assert (ctx.correlation_id, ctx.workflow_id, ctx.fence) == ("c", "w", 1)
    assert ctx.created_at == datetime.fromtimestamp(1_800_000_000, UTC)
    assert ctx.deadline == datetime.fromtimestamp(1_800_000_001, UTC)
    assert ctx.tags == {"k": "v"}
    assert ctx.idempotency_key == "j1:1"
    assert ctx.compensates is None


def test_a_root_is_its_own_group(port: FakeAttempt) -> None:
    ctx = Context(port)
    assert (ctx.group_id, ctx.parent, ctx.deadline) == ("j1", None, None)


def test_it_cannot_change_the_job(port: FakeAttempt) -> None:
    with pytest.raises(TypeError):
        Context(port).tags["a"] = "b"  # type: ignore[index]


@pytest.mark.parametrize(
    ("data", "arguments"),
    [
        (b'{"a":1,"when":{"$rw":"date","v":"2026-01-01"}}', {"a": 1, "when": date(2026, 1, 1)}),
        (b"[1]", None),
        (b"\x00sealed", None),
    ],
)
def test_what_it_compensates(data: bytes, arguments: dict[str, Any] | None) -> None:
    origin = CompensatedJob(id="o", run=2, type="pay", input=data, error=OOPS, started=False)
    seen = Context(FakeAttempt(record(origin=origin), add)).compensates
    assert seen is not None
    assert (seen.id, seen.run, seen.type, seen.error, seen.started) == ("o", 2, "pay", OOPS, False)
    assert seen.arguments == arguments


def test_resources_by_class(port: FakeAttempt) -> None:
    port.resources = [3, "text"]
    assert Context(port).resource(str) == "text"


# ── results ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_results_that_are_not_returned(port: FakeAttempt) -> None:
    ctx = Context(port)
    assert ctx.unreturned(3) == []
    first, second = ctx.result(1), ctx.void()
    assert (first.value, second.value) == (1, None)
    assert ctx.unreturned(second) == [first]
    assert ctx.unreturned(None) == [first, second]


# ── saying and asking ───────────────────────────────────────────────────────────────────────────────────────────


def test_progress(port: FakeAttempt) -> None:
    Context(port).progress(0)
    Context(port).progress(100, "done")
    assert port.said == [("progress", 0.0, None), ("progress", 100.0, "done")]


@pytest.mark.parametrize(("percent", "kept"), [(-1, 0.0), (100.1, 100.0), (500, 100.0), (float("inf"), 100.0)])
def test_progress_beyond_its_range_is_kept_within(port: FakeAttempt, percent: float, kept: float) -> None:
    Context(port).progress(percent)
    assert port.said == [("progress", kept, None)]


def test_what_no_store_keeps_is_left_out_of_a_progress_message(port: FakeAttempt) -> None:
    Context(port).progress(1, "a\x00b\ud800")
    assert port.said == [("progress", 1.0, "ab\\ud800")]


@pytest.mark.parametrize("percent", [float("nan"), "50", None, True])
def test_wrong_progress(port: FakeAttempt, percent: Any) -> None:
    with pytest.raises(InvalidInput, match="must be a number from 0 to 100"):
        Context(port).progress(percent)
    with pytest.raises(InvalidInput, match="message=3 must be a string"):
        Context(port).progress(1, 3)  # type: ignore[arg-type]
    assert port.said == []


def test_cancellation(port: FakeAttempt) -> None:
    ctx = Context(port)
    assert not ctx.cancelled
    assert ctx.cancellation is None
    ctx.raise_if_cancelled()
    port.why = Cancellation(LossReason.CANCELLED, "changed my mind")
    assert ctx.cancelled
    assert ctx.cancellation == port.why
    with pytest.raises(JobCancelled, match=r"cancelled: changed my mind") as raised:
        ctx.raise_if_cancelled()
    assert raised.value.job_id == "j1"
    port.why = Cancellation(LossReason.TIMEOUT, None)
    with pytest.raises(JobCancelled, match=r"should end \(timeout\)"):
        ctx.raise_if_cancelled()


async def test_what_it_asks_of_the_store(port: FakeAttempt) -> None:
    ctx, child = Context(port), add(1, 2).using(id="child")
    await ctx.checkpoint({"at": 3})
    assert ctx.last_checkpoint == {"at": 3}
    assert await ctx.spawn(child, key="k") == child.id
    assert await ctx.spawn_many(iter([child, child])) == [child.id, child.id]
    assert await ctx.states(["x"]) == {"x": State.RUNNING}
    assert await ctx.once("key")
    assert await ctx.once("key", ttl=3)
    assert port.said[1:] == [
        ("spawn", ("add", "k")),
        ("spawn", ("add", None), ("add", None)),
        ("once", "key", 86_400),
        ("once", "key", 3),
    ]


def test_the_same_verbs_blocking(port: FakeAttempt) -> None:
    sync, child = Context(port).sync, add(1, 2).using(id="child")
    sync.checkpoint(3)
    assert sync.spawn(child, key="k") == child.id
    assert sync.spawn_many([child]) == [child.id]
    assert sync.states(["x"]) == {"x": State.RUNNING}
    assert sync.once("key", 5)
    assert port.said == [("checkpoint", 3), ("spawn", ("add", "k")), ("spawn", ("add", None)), ("once", "key", 5)]


def test_sync_has_every_verb_of_the_context() -> None:
    members = vars(Context).items()
    verbs = {
        name
        for name, each in members
        if name[0] != "_" and callable(each) and inspect.iscoroutinefunction(inspect.unwrap(each))
    }
    blocking = {name for name in vars(type(Context(FakeAttempt(record(), add)).sync)) if not name.startswith("_")}
    assert blocking == verbs | {"transaction"}  # which is entered with `with` instead of `async with`


# ── log ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_log_lines_say_which_job(port: FakeAttempt, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="ropewalk.job"):
        Context(port).log.info("half of %s", 10, extra={"mine": 1})
    (line,) = caplog.records
    assert line.getMessage() == "half of 10"
    shown = {name: value for name, value in vars(line).items() if name.startswith("job_") or name == "mine"}
    assert shown == {
        "job_id": "j1",
        "job_type": "add",
        "job_attempt": 1,
        "job_queue": "default",
        "job_tenant": "default",
        "job_correlation_id": None,
        "job_workflow_id": None,
        "job_trace_id": None,
        "job_span_id": None,
        "mine": 1,
    }


@pytest.mark.parametrize(
    ("log_context", "shown"),
    [
        (lambda arguments: {"name": arguments["a"]}, {"name": 1}),
        (lambda arguments: arguments["z"], {"log_context_failed": "KeyError: 'z'"}),
    ],
    ids=["derived", "raising"],
)
def test_log_context_from_the_input(log_context: Any, shown: Any, caplog: pytest.LogCaptureFixture) -> None:
    @job(log_context=log_context)
    async def told(a: int, b: int) -> None: ...

    Context(FakeAttempt(record(), told)).log.warning("x")
    assert vars(caplog.records[0])["job_context"] == shown


# ── the current context ─────────────────────────────────────────────────────────────────────────────────────────


def test_outside_a_handler_there_is_none() -> None:
    with pytest.raises(RuntimeError, match="there is no running job here"):
        current()


async def test_each_task_has_its_own(port: FakeAttempt) -> None:
    both = asyncio.Barrier(2)

    async def handler() -> bool:
        mine = Context(port)
        token = activate(mine)
        await both.wait()
        found = current() is mine
        deactivate(token)
        return found

    async with asyncio.timeout(5):
        assert [*await asyncio.gather(handler(), handler())] == [True, True]
    with pytest.raises(RuntimeError):
        current()


async def test_it_follows_into_threads_started_for_it(port: FakeAttempt) -> None:
    mine = Context(port)
    token = activate(mine)
    assert await asyncio.to_thread(current) is mine
    deactivate(token)
    seen: list[type] = []

    def elsewhere() -> None:
        try:
            current()
        except RuntimeError as error:
            seen.append(type(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(5)
    assert seen == [RuntimeError]
