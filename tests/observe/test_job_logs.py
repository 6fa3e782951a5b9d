"""What handlers log is kept with the job, bounded, with secrets hidden; events nobody may miss."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Annotated, Any

import pytest

from ropewalk import Abort, App, Batch, Context, Event, Logs, Retry, Secret, batch_job, job
from ropewalk.domain.logs import LINE_CHARS_MAX, LINES_MAX
from ropewalk.errors import DefinitionError, NotFound
from ropewalk.testing import Rehearsal
from tests.apps import MakeApp

gates: dict[str, asyncio.Event] = {}


@job(log_context=lambda arguments: {"order": arguments["order"], "card": arguments["card"]})
async def pay(ctx: Context, order: str, card: Annotated[str, Secret]) -> None:
    ctx.log.debug("too quiet")
    ctx.log.info("paying %s", order, extra={"amount": 12, "api_token": "abc"})
    try:
        raise ValueError("declined")
    except ValueError:
        ctx.log.exception("failed\x00 once")
    if ctx.attempt == 1:
        raise Retry(after=0)


@job
async def chatty(ctx: Context, lines: int) -> None:
    for number in range(lines):
        ctx.log.info("line %d", number)


@job
async def slow(ctx: Context) -> None:
    ctx.log.warning("still here")
    await gates["open"].wait()


@job
def in_a_thread(ctx: Context) -> None:
    ctx.log.info("from %s", threading.current_thread().name)


@job(executor="process")
def in_a_process(ctx: Context) -> None:
    ctx.log.info("from afar", extra={"password": "p"})


@batch_job(size=10, max_wait=0.01)
async def batched(batch: Batch[int]) -> list[int]:
    for context in batch.contexts:
        context.log.info("one of many")
    return list(batch.items)


@job
async def odd(ctx: Context) -> None:
    ctx.log.info("100 %d", "no number")
    ctx.log.info("%(a)s", {"a": 1})
    ctx.log.info("x" * 5_000, extra={"big": "y" * 5_000})
    ctx.log.info("odd", extra={"half": "\ud800", "object": threading.Lock})


@job
async def fine() -> None: ...


@job(on_failure=fine)
async def fails() -> None:
    raise Abort("no")


async def test_lines_are_kept_over_all_attempts(make_app: MakeApp) -> None:
    """R10: with level, time, attempt and fields; secrets hidden, by name and by annotation."""
    app = make_app(pay)
    async with app.running():
        handle = await app.enqueue(pay("o-7", card="4111"))
        await handle.result(timeout=10)
        lines = await app.logs(handle.id)
    context = {"order": "o-7", "card": "[hidden]"}
    once = [
        ("INFO", "paying o-7", {"amount": 12, "api_token": "[hidden]", "context": context}),
        ("ERROR", "failed\\x00 once", {"context": context, "error": "ValueError: declined"}),
    ]
    assert [(line.level, line.message, dict(line.fields)) for line in lines] == once * 2
    assert [line.attempt for line in lines] == [1, 1, 2, 2]
    assert lines == sorted(lines, key=lambda line: line.at)


async def test_lines_of_a_running_job_can_be_read(make_app: MakeApp) -> None:
    """R10: they travel with the renewals."""
    gates["open"] = asyncio.Event()  # of this test's loop
    app = make_app(slow)
    async with app, app.worker(lease=600):  # the lease itself is not due for minutes
        handle = await app.enqueue(slow())
        async with asyncio.timeout(20):
            while not (lines := await app.logs(handle.id)):
                await asyncio.sleep(0.05)
        gates["open"].set()
        await handle.result(timeout=10)
        assert await app.logs(handle.id) == lines


async def test_from_threads_processes_and_batches(make_app: MakeApp) -> None:
    app = make_app(in_a_thread, in_a_process, batched)
    async with app.running():
        threaded, isolated = await app.enqueue(in_a_thread()), await app.enqueue(in_a_process())
        many = await app.enqueue_many([batched(n) for n in range(3)])
        for handle in (threaded, isolated, *many):
            await app.wait(handle.id, timeout=60)
        assert (await app.logs(threaded.id))[0].message.startswith("from ropewalk")
        [line] = await app.logs(isolated.id)
        assert (line.message, dict(line.fields)) == ("from afar", {"password": "[hidden]"})
        assert [len(await app.logs(each.id)) for each in many] == [1, 1, 1]


async def test_the_newest_lines_of_a_job_are_kept() -> None:
    """R10: a handler that logs without end costs no more than that."""
    app = Rehearsal(App("memory://", jobs=[chatty]))
    handle = await app.enqueue(chatty(LINES_MAX + 200))
    await app.drain()
    lines = await app.logs(handle.id)
    assert [line.message for line in (lines[0], lines[-1])] == ["line 200", f"line {LINES_MAX + 199}"]
    assert len(lines) == LINES_MAX


async def test_odd_lines_are_kept_as_well_as_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)  # logging itself complains about the first
    app = Rehearsal(App("memory://", jobs=[odd]))
    handle = await app.enqueue(odd())
    await app.drain()
    first, named, long, last = await app.logs(handle.id)
    assert (first.message, named.message) == ("100 %d", "1")
    assert len(long.message) <= LINE_CHARS_MAX and "dropped" in long.fields
    assert last.fields["half"] == "'\\ud800'"


@pytest.mark.parametrize(("keep", "kept"), [("DEBUG", 3), ("ERROR", 1), (None, 0)])
async def test_the_app_says_what_is_kept(keep: Any, kept: int) -> None:
    app = Rehearsal(App("memory://", jobs=[pay], logs=Logs(keep=keep, secret_keys=("amount",))))
    handle = await app.enqueue(pay("o", card="c"), max_attempts=1)
    await app.drain()
    lines = await app.logs(handle.id)
    assert len(lines) == kept
    assert [line.fields["amount"] for line in lines if "amount" in line.fields] == ["[hidden]"] * (kept > 1)


@pytest.mark.parametrize("wrong", [{"keep": "LOUD"}, {"keep": 20}, {"secret_keys": (1,)}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=next(iter(wrong))):
        Logs(**wrong)


async def test_a_job_that_is_not_there_has_no_log() -> None:
    with pytest.raises(NotFound):
        await App("memory://").logs("nobody")


async def test_lines_say_where_they_were_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="ropewalk.job"):
        await Rehearsal(App("memory://", jobs=[chatty])).run(chatty(1))
    assert caplog.records[0].filename == "test_job_logs.py" and caplog.records[0].funcName == "chatty"


# ── events ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_waiting_job_that_is_cancelled_is_told(make_app: MakeApp) -> None:
    """O1: to the app's hook and to the type's."""
    heard: list[Event] = []
    app = make_app(fine, on_event=heard.append)
    async with app:
        handle = await app.enqueue(fine(), delay=60)
        await app.cancel(handle.id, reason="changed my mind")
        await app.cancel(handle.id)
    assert [(event.kind, event.type) for event in heard] == [("queued", "fine"), ("cancelled", "fine")]


async def test_what_skips_the_queue_and_what_compensates_is_told_too(make_app: MakeApp) -> None:
    """O1: every job that exists was `queued` once."""
    heard: list[Event] = []
    app = make_app(fine, fails, on_event=heard.append)
    async with app.running() as worker:
        await app.enqueue(fine(), skip_queue=True).result(timeout=10)
        failed = await app.enqueue(fails())
        await app.wait(failed.id, timeout=10)
        await worker.idle()
    kinds: dict[str, list[str]] = {}
    for event in (each for each in heard if each.kind != "group_closed"):
        kinds.setdefault(event.job_id, []).append(event.kind)
    assert list(kinds.values()) == [
        ["queued", "started", "succeeded"],
        ["queued", "started", "failed"],
        ["queued", "started", "succeeded"],
    ]
