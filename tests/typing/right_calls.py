"""Calls that must check, with the types they must have. Read by the checkers, never run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Never, assert_type

import psycopg
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from ropewalk import sqlite3
from ropewalk.app import App
from ropewalk.client.handle import Handle
from ropewalk.client.views.jobs import JobInfo
from ropewalk.client.views.schedules import ScheduleInfo
from ropewalk.definitions.context.context import Context, current
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.middleware import CallNext, Middleware
from ropewalk.definitions.options import AppDefaults, Decision, EnqueueOptions
from ropewalk.definitions.registry import Registry
from ropewalk.definitions.results.results import Result
from ropewalk.definitions.schedule import schedule
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.fleet.worker_processes import WorkerProcesses
from ropewalk.ports.store.leases import WorkerCard
from ropewalk.ports.store.limits import LimitUse
from ropewalk.worker.services.redriver import Redrive
from ropewalk.worker.worker import Worker

# ── async, without and with a context ───────────────────────────────────────────────────────────────────────────


@job
async def add(a: int, b: int) -> int:
    return a + b


assert_type(add(1, b=2), Job[int, int])
assert_type(add(1, 2).using(delay=3), Job[int, int])
assert_type(add(1, 2).again(), Job[int, int])
assert_type(add.from_arguments({"a": 1, "b": 2}), Job[int, int])
assert_type(add.decode_result(b"3"), int)
assert_type(add(1, 2).type.name, str)


@job
async def fetch(ctx: Context, url: str, *, tries: int = 3) -> bytes:
    ctx.progress(50, "half")
    return f"{ctx.id} {url} {tries}".encode()


assert_type(fetch("u"), Job[bytes, bytes])
assert_type(fetch(url="u", tries=1), Job[bytes, bytes])


@job
async def nothing(a: int) -> None:
    print(a)


@job
async def nothing_with_context(ctx: Context) -> None:
    ctx.raise_if_cancelled()


assert_type(nothing(1), Job[None, Never])
assert_type(nothing_with_context(), Job[None, Never])


@job
async def maybe(a: int) -> str | None:
    return str(a) if a else None


assert_type(maybe(1), Job[str | None, str | None])


# ── Results ─────────────────────────────────────────────────────────────────────────────────────────────────────


@job
async def wrapped(ctx: Context, a: int) -> Result[int, int]:
    return ctx.result(a)


@job
async def wrapped_or_none(ctx: Context, a: int) -> Result[int, int] | None:
    return ctx.result(a) if a else None


@job
async def delegating(ctx: Context) -> Result[None, Never]:
    return ctx.void()


@job
async def two_types(ctx: Context) -> Result[int, str]:
    raise NotImplementedError(ctx.id)


@job
async def found_context(a: int) -> Result[int, int]:
    return current().result(a)


assert_type(wrapped(1), Job[int, int])
assert_type(wrapped_or_none(1), Job[int | None, int])
assert_type(delegating(), Job[None, Never])
assert_type(two_types(), Job[int, str])
assert_type(found_context(1), Job[int, int])


# ── sync, threads and processes ─────────────────────────────────────────────────────────────────────────────────


@job
def thumbnail(image: bytes, size: tuple[int, int] = (64, 64)) -> bytes:
    return image[: size[0]]


@job
def noted(ctx: Context, text: str) -> None:
    ctx.sync.checkpoint(text)


@job
def sync_result(ctx: Context) -> Result[str, str]:
    return ctx.result("x")


@job
def sync_result_or_none(ctx: Context, a: int) -> Result[str, str] | None:
    return ctx.result("x") if a else None


@job(executor="process", timeout=timedelta(minutes=5))
def crunch(ctx: Context, n: int) -> float:
    assert_type(ctx.sync.once("k"), bool)
    return float(n)


@job(executor="process")
def crunch_nothing(n: int) -> None:
    print(n)


@job(executor="thread", name="pause", max_attempts=None)
def threaded(a: int) -> int:
    return a


assert_type(thumbnail(b"", (1, 2)), Job[bytes, bytes])
assert_type(noted("x"), Job[None, Never])
assert_type(sync_result(), Job[str, str])
assert_type(sync_result_or_none(1), Job[str | None, str])
assert_type(crunch(3), Job[float, float])
assert_type(crunch_nothing(3), Job[None, Never])
assert_type(threaded(1), Job[int, int])


# ── options ─────────────────────────────────────────────────────────────────────────────────────────────────────

slow = job(queue="slow", lease=120, backoff=Backoff.constant(5))


@slow
async def nightly(day: datetime) -> dict[str, int]:
    return {"day": day.day}


@slow(name="weekly", backoff=lambda attempt: attempt * 2.0, retry_on=(OSError,), decide=lambda error: "retry")
async def weekly(weeks: list[int]) -> int:
    return len(weeks)


@job(retry_on=OSError, abort_on=[KeyError, IndexError], unique=lambda arguments: arguments["user"].lower())
async def greeted(user: str) -> None:
    print(user)


BOTH = (weekly, greeted)
"""mypy makes a list of them a list[object]"""
App(jobs=BOTH)
App(jobs=[*BOTH, nightly])


@job(decide=lambda error, attempt: "abort" if attempt > 2 else attempt * 2.0)
async def patient(weeks: int) -> int:
    return weeks


def by_attempt(error: BaseException, attempt: int) -> Decision:
    return "abort" if attempt > 2 or isinstance(error, OSError) else None


job(decide=by_attempt)
AppDefaults.of(decide=by_attempt)


def by_size(arguments: object) -> EnqueueOptions:
    return {"priority": 10, "tags": {"from": str(arguments)}}


@job(options=by_size, unique=lambda arguments: str(arguments["a"]), on_failure=nothing, skip_queue=True)
async def computed(a: int) -> int:
    return a


assert_type(nightly(datetime.now(UTC)), Job[dict[str, int], dict[str, int]])
assert_type(weekly([1]), Job[int, int])
assert_type(computed(1).using(run_at=datetime.now(UTC), on_failure=nothing(2)), Job[int, int])
assert_type(computed(1).using(on_failure=None, max_attempts=None, tags={"a": "b"}), Job[int, int])


# ── where they are used ─────────────────────────────────────────────────────────────────────────────────────────


async def uses_context(ctx: Context) -> None:
    assert_type(await ctx.spawn(add(1, 2), key="k"), str)
    assert_type(await ctx.spawn_many(add(i, i) for i in range(3)), list[str])
    assert_type(ctx.resource(Backoff), Backoff)
    assert_type(ctx.result([1]), Result[list[int], list[int]])
    assert_type(ctx.void(), Result[None, Never])


def by_hand(after: datetime) -> datetime | None:
    return after


async def made_later(fire: datetime) -> Job[int, int] | None:
    return computed(fire.year)


async def uses_schedules(app: App) -> None:
    schedule("a", cron="@daily", timezone="Europe/Oslo", job=add(1, 2), missed="once", tenant="acme", reset=True)
    app.schedule("b", next=by_hand, run=made_later)
    assert_type(await app.create_schedule("c", every=timedelta(hours=1), run="made_later"), ScheduleInfo)
    assert_type(await app.edit_schedule("c", every=3.5), ScheduleInfo)
    assert_type(await app.edit_schedule("c", using={"queue": "slow"}, arguments={"a": 1}, dry_run=True), ScheduleInfo)
    assert_type(app.sync.trigger_schedule("c"), JobInfo)
    assert_type(app.sync.tenant("acme").schedules(upcoming=3), list[ScheduleInfo])


async def holds_handles(app: App) -> Handle[object, object]:
    handles = [await app.enqueue(add(1, 2)), await app.enqueue(nothing(1))]
    for handle in (*handles, *await app.enqueue_many([fetch("u")])):
        print(handle.id, await handle.result())
    print([each.result() for each in (app.sync.enqueue(add(1, 2)), app.sync.enqueue(nothing(1)))])
    return await app.enqueue(add(1, 2))


def takes_any_type(job_type: JobType[..., object, object]) -> str:
    return job_type.name


takes_any_type(add)
takes_any_type(nothing)
Registry(add, fetch, Registry(crunch))


async def joins(
    app: App,
    blocking: psycopg.Connection[tuple[int]] | sqlite3.Connection | Session | Connection,
    awaited: psycopg.AsyncConnection[tuple[int]] | AsyncSession | AsyncConnection,
) -> None:
    assert_type(await app.enqueue(add(1, 2), connection=awaited), Handle[int, int])
    assert_type(await app.enqueue(add(1, 2), connection=blocking, delay=3).result(), int)
    assert_type(await app.tenant("acme").enqueue_many([add(1, 2)], connection=awaited), list[Handle[int, int]])
    assert_type(app.sync.enqueue(add(1, 2), connection=blocking).result(), int)
    await app.enqueue("add", {"a": 1, "b": 2}, connection=None)
    assert_type(sqlite3.connect("jobs.db"), sqlite3.Connection)


# ── middlewares ─────────────────────────────────────────────────────────────────────────────────────────────────


async def with_session(ctx: Context, call_next: CallNext) -> object:
    ctx.provide(str, "a session")
    assert_type(ctx.resource(str), str)
    assert_type(ctx.batch, tuple[Context, ...])
    assert_type(await call_next(), object)
    return await call_next(ctx)


async def spelled_out(ctx: Context, call_next: Callable[[], Awaitable[object]]) -> int:
    return len(str(await call_next()))


class Timed:
    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self, ctx: Context, call_next: CallNext) -> object:
        return await call_next()


timed: Middleware = Timed("all")
wrapped_app = App(jobs=[add], middlewares=[with_session, spelled_out, timed])


@job(middlewares=[with_session], requires=[Timed, spelled_out])
async def around(ctx: Context, a: int) -> str:
    return ctx.resource(str) * a


@job(executor="process", memory_mb=256, requires=[Timed])
def bounded(a: int) -> str:
    return str(a)


assert_type(around(1), Job[str, str])
assert_type(bounded(1), Job[str, str])

wrapped_app.worker(redrive=Redrive(types=add))
wrapped_app.worker(redrive=Redrive(types=[add, "around"], batch=5, every=timedelta(minutes=1), older_than=60))


# ── clients of one tenant, and the app's own ────────────────────────────────────────────────────────────────────


async def looks_after_tenants(app: App) -> None:
    acme = app.tenant("acme")
    assert_type(await acme.limits(), list[LimitUse])
    await acme.set_limit(queue="mail", concurrency=1)
    assert_type(await app.limits(every_tenant=True), list[LimitUse])
    assert_type(await app.operator("acme").limits(every_tenant=True), list[LimitUse])
    assert_type(app.sync.limits(every_tenant=True), list[LimitUse])
    assert_type(app.sync.tenant("acme").limits(), list[LimitUse])
    assert_type(app.sync.workers(), list[WorkerCard])
    assert_type(await app.workers(), list[WorkerCard])
    assert_type(app.worker(queues=["mail"]), Worker)
    assert_type(app.worker(queues=["mail"], processes=2), WorkerProcesses)
