"""What a handler gives its context is checked like everything else; so is what the smaller public classes are given."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from ropewalk import App, Context, Defer, InvalidInput, Registry, Retry, job
from ropewalk.integrations.otel import OpenTelemetry
from ropewalk.logging import JsonFormatter
from tests.inputs.values import mail

WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "progress": (lambda ctx: ctx.progress("50"), "percent='50' must be a number"),
    "message": (lambda ctx: ctx.progress(50, 3), "message=3 must be a string"),
    "spawn": (lambda ctx: ctx.spawn(mail), "job=<job type mail .* is no job; call it: spawn"),
    "key": (lambda ctx: ctx.spawn(mail(), key=""), "key is empty"),
    "spawn_many": (lambda ctx: ctx.spawn_many("mail"), "jobs='mail' is no job"),
    "states": (lambda ctx: ctx.states(3), "ids=3 must be a string"),
    "once": (lambda ctx: ctx.once(""), "key is empty"),
    "ttl": (lambda ctx: ctx.once("a", ttl="x"), "ttl='x' is not a duration"),
    "sleep": (lambda ctx: ctx.sleep("3"), "seconds='3' is not a duration"),
    "wait_for": (lambda ctx: ctx.wait_for(""), "name is empty"),
    "timeout": (lambda ctx: ctx.wait_for("a", timeout="3"), "timeout='3' is not a duration"),
    "step": (lambda ctx: ctx.step(3, len, ""), "name=3 must be a string"),
    "fn": (lambda ctx: ctx.step("a", None), "None is no function: give the function itself"),
    "resource": (lambda ctx: ctx.resource("db"), "kind='db' must be a class"),
    "provide": (lambda ctx: ctx.provide("db", 3), r"provide\('db', ...\): give the class to find it by"),
    "queue": (lambda ctx: ctx.queue([mail()]), r"job=\[Job\(mail .* is no job"),
    "nested": (
        lambda ctx: ctx.queue(ctx.result(5), mail()),
        r"Result\(<int>\) cannot be queued: only jobs and ctx.queue",
    ),
    "next": (lambda ctx: ctx.queue(mail()).next("mail"), "job='mail' is no job"),
    "option": (lambda ctx: ctx.queue(mail()).next(mail(), dely=3), "'dely' is no option .* did you mean 'delay'"),
    "append": (lambda ctx: ctx.result(3, append="product"), "append='product' must be 'list', .* or a function"),
    "final": (lambda ctx: ctx.result(3, final="yes"), "final='yes' must be True or False"),
    "continue_with": (lambda ctx: ctx.continue_with(mail), "call it: continue_with"),
    "after": (lambda ctx: raised(Retry(after="3")), "after='3' is not a duration"),  # type: ignore[arg-type] # wrong
    "delay": (lambda ctx: raised(Defer(delay="3")), "delay='3' is not a duration"),  # type: ignore[arg-type] # wrong
    "at": (lambda ctx: raised(Defer(at=datetime(2026, 1, 1))), "at=.* has no time zone"),  # noqa: DTZ001 # wrong
}


def raised(error: Exception) -> None:
    raise error


@job(max_attempts=1)
async def gives(ctx: Context, name: str) -> object:
    answer = WRONG[name][0](ctx)
    return await answer if hasattr(answer, "__await__") else answer


@pytest.mark.parametrize("name", WRONG)
async def test_what_a_handler_gives_wrongly(name: str) -> None:
    app = App("memory://", jobs=[gives, mail])
    async with app.running():
        info = await app.wait((await app.enqueue(gives(name))).id, timeout=5)
        assert await app.count() == 1, "nothing of it was written"
    assert info.error is not None
    assert info.error.type == "InvalidInput", info.error
    with pytest.raises(AssertionError, match=WRONG[name][1]):
        raise AssertionError(info.error.message)


def test_a_lone_secret_key_is_a_name() -> None:
    record = logging.makeLogRecord({"msg": "paid", "iban": "NO93", "i": 1})
    line = JsonFormatter(secret_keys="iban").format(record)
    assert '"i":1' in line and "NO93" not in line
    with pytest.raises(InvalidInput, match="secret_keys=3 must be a string"):
        JsonFormatter(secret_keys=3)  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize("name", [None, 3, mail, [mail]])
def test_a_registry_is_asked_by_name(name: Any) -> None:
    with pytest.raises(InvalidInput, match="name"):
        Registry(mail).get(name)


def test_a_tracer_provider() -> None:
    with pytest.raises(InvalidInput, match="tracer_provider=3 must be a TracerProvider"):
        OpenTelemetry(3)  # type: ignore[arg-type] # that is the point
