"""Handlers that run in processes of their own: the child imports this very module."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from ropewalk import Abort, Backoff, Context, Defer, LimitExceeded, Result, Retry, current, job
from ropewalk.definitions.options import Decision

# ── returning ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Order:
    id: int
    price: Decimal
    at: datetime
    tags: set[str]


@job(executor="process")
def add(a: int, b: int) -> int:
    return a + b


@job(executor="process")
def discount(order: Order, by: Decimal) -> Order:
    return Order(order.id, order.price - by, order.at + timedelta(days=1), order.tags | {"discounted"})


@job(executor="process")
def pid() -> int:
    return os.getpid()


@job(executor="process")
def session() -> tuple[int, int, int]:
    return os.getpid(), os.getpgrp(), os.getsid(0)


@job(executor="process")
def inheritable_descriptors() -> list[int]:
    found: list[int] = []
    for fd in range(3, 64):
        with contextlib.suppress(OSError):
            if os.get_inheritable(fd):
                found.append(fd)
    return found


@job(executor="process")
def nothing() -> None:
    return None


@job(executor="process")
def wrapped(ctx: Context) -> Result[int, int]:
    return ctx.result(3)


@job(executor="process")
def forgets_result(ctx: Context) -> int:
    ctx.result(3)
    return 4


@job(executor="process", strict_return=False)
def may_forget_result(ctx: Context) -> int:
    ctx.result(3)
    return 4


@job(executor="process")
def big(size: int) -> str:
    return "x" * size


@job(executor="process")
def wrong_return() -> int:
    return "no number"  # type: ignore[return-value] # that is the point


@job(executor="process")
def who_am_i(ctx: Context) -> list[str]:
    return [ctx.id, current().id, ctx.idempotency_key, str(ctx.attempt), ctx.tenant]


def awaited(function: Callable[[Context], Coroutine[Any, Any, int]]) -> Callable[[Context], int]:
    @functools.wraps(function)
    def call(ctx: Context) -> int:
        return function(ctx)  # type: ignore[return-value] # the runner awaits it

    return call


@job(executor="process")
@awaited
async def asynchronous(ctx: Context) -> int:
    first, second = await asyncio.gather(ctx.once("one"), ctx.once("two"))
    await asyncio.sleep(0)
    return int(first) + int(second) + int(current() is ctx)


@job(executor="process")
def prints(text: str) -> None:
    print(text, end="")
    print(text, end="", file=sys.stderr)


# ── failing ─────────────────────────────────────────────────────────────────────────────────────────────────


@job(executor="process")
def breaks() -> None:
    _deeper()


def _deeper() -> None:
    raise KeyError("missing")


@job(executor="process")
def unspeakable() -> None:
    raise ValueError("not text: \udcff")


@job(executor="process")
def aborts() -> None:
    raise Abort(ValueError("never"))


@job(executor="process")
def defers(seconds: float | None, at: datetime | None) -> None:
    raise Defer(delay=seconds, at=at)


@job(executor="process")
def retries(after: float) -> None:
    raise Retry("later", after=after)


@job(executor="process")
def exits() -> None:
    sys.exit(4)


@job(executor="process", abort_on=(ZeroDivisionError,))
def divides() -> float:
    return 1 / 0


def _broken_classifier(error: BaseException) -> None:
    raise RuntimeError(f"cannot classify {error!r}")


@job(executor="process", decide=_broken_classifier)
def badly_classified() -> None:
    raise OSError("disk on fire")


def _final_at_the_third(_error: BaseException, attempt: int) -> Decision:
    return "abort" if attempt == 3 else None


@job(executor="process", decide=_final_at_the_third)
def classified_by_attempt() -> None:
    raise OSError("disk on fire")


# ── asking the worker ───────────────────────────────────────────────────────────────────────────────────────


@job
async def child(number: int) -> int:
    return number


@job
async def clean_up(number: int) -> None: ...


@job(executor="process")
def asks(ctx: Context) -> list[object]:
    ctx.progress(25, "a quarter")
    before = ctx.last_checkpoint
    ctx.sync.checkpoint({"at": datetime(2030, 1, 1, tzinfo=UTC), "seen": {1, 2}})
    ctx.progress(50)
    return [
        before,
        ctx.last_checkpoint["seen"] == {1, 2},
        ctx.sync.spawn(child(1), key="first"),
        ctx.sync.spawn_many([child(2), child(3)]),
        {job_id: state.value for job_id, state in ctx.sync.states(["x", "y"]).items()},
        ctx.sync.once("only", ttl=timedelta(minutes=1)),
    ]


@job(executor="process")
def spawns_with_options(ctx: Context) -> None:
    options = child(1).using(
        delay=timedelta(seconds=5),
        deadline=datetime(2040, 1, 1, tzinfo=UTC),
        backoff=Backoff.constant(3),
        tags={"a": "b"},
        max_attempts=None,
        on_failure=clean_up(9).using(priority=7),
    )
    ctx.sync.spawn_many([options, child(2).using(on_failure=clean_up), child(3).using(on_failure=None)])


@job(executor="process")
def spawns_unknown(ctx: Context) -> str:
    import tests.runners.only_there as elsewhere

    return ctx.sync.spawn(elsewhere.stranger())


@job(executor="process")
def spawns_one(ctx: Context) -> str:
    return ctx.sync.spawn(child(1))


@job(executor="process")
def oversize_checkpoint(ctx: Context) -> str:
    try:
        ctx.sync.checkpoint("x" * 100)
    except LimitExceeded as error:
        return f"{error.field}: {error}"
    return "accepted"


@job(executor="process")
def oversize_message(ctx: Context, size: int) -> None:
    ctx.sync.checkpoint("x" * size)


@job(executor="process")
@awaited
async def blocks_its_loop(ctx: Context) -> int:
    return int(ctx.sync.once("never"))


@job(executor="process")
def tells(ctx: Context, percent: Any) -> None:
    ctx.progress(percent)


@job(executor="process")
def wants_resource(ctx: Context) -> None:
    ctx.resource(Path)


@job(executor="process")
def waits_for_cancel(ctx: Context) -> str:
    ctx.progress(1, "waiting")
    while not ctx.cancelled:
        time.sleep(0.005)
    why = ctx.cancellation
    assert why is not None
    return f"{why.reason.value}: {why.message}"


@job(executor="process")
def cancelled_at_checkpoint(ctx: Context) -> None:
    ctx.sync.checkpoint(1)
    ctx.raise_if_cancelled()


@job(executor="process")
def many_threads(ctx: Context) -> int:
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda: answers.append(ctx.sync.once("k"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(answers)


_left_behind: list[Context] = []


@job(executor="process")
def leaves_context(ctx: Context) -> None:
    _left_behind.append(ctx)


@job(executor="process")
def uses_left_context() -> str:
    try:
        _left_behind.pop().progress(99, "from the grave")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "heard"


# ── workflows ───────────────────────────────────────────────────────────────────────────────────────────────


@job(executor="process")
def fans_out(ctx: Context, count: int) -> Result[None, int]:
    return ctx.queue(*(child(number) for number in range(count))).next(
        child(99).using(tags={"a": "b"}), when="all_done"
    )


@job(executor="process")
def continues(ctx: Context) -> Result[int, int]:
    return ctx.continue_with(add(1, 2))


@job(executor="process")
def contributes(ctx: Context, append: Literal["sum"]) -> Result[int, int]:
    return ctx.result(3, append=append)


def fold(existing: int | None, value: int) -> int:
    return (existing or 0) + value


@job(executor="process")
def folds(ctx: Context) -> Result[int, int]:
    return ctx.result(3, append=fold)


def order(number: int) -> Order:
    return Order(number, Decimal(number), datetime(2030, 1, 1, tzinfo=UTC), {"x"})


@job(executor="process")
def steps(ctx: Context) -> list[str]:
    first = ctx.sync.step("order", order, 7)
    ctx.sync.sleep(60)
    answer = ctx.sync.wait_for("answer", timeout=10)
    return [type(first).__name__, str(first.price), repr(answer)]


@job(executor="process")
def reads_parents(ctx: Context) -> list[str]:
    return [f"{each.id} {each.type} {each.ending} {each.result!r}" for each in ctx.dependencies]
