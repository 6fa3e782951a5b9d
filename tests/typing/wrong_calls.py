"""Calls that must not check: an error on every line marked `# E`, and on no other. Read by the checkers, never run.

What is marked `# E by mypy` is found by mypy alone, with its error code `unused-awaitable`.
"""

from __future__ import annotations

from sqlalchemy import create_engine

from ropewalk.app import App
from ropewalk.definitions.context.context import Context
from ropewalk.definitions.dependency import Count, Group
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.batch_decorator import batch_job
from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.middleware import CallNext, Middleware
from ropewalk.definitions.options import Decision, EnqueueOptions
from ropewalk.definitions.results.results import Result
from ropewalk.definitions.schedule import schedule
from ropewalk.worker.services.redriver import Redrive


@job
async def add(a: int, b: int) -> int:
    return a + b


@job
async def fetch(ctx: Context, url: str) -> bytes:
    return f"{ctx.id} {url}".encode()


@job
async def nothing(a: int) -> None:
    print(a)


@job
def thumbnail(ctx: Context, image: bytes, *, size: int = 64) -> bytes:
    return image[:size] + ctx.id.encode()


@job(executor="process")
def crunch(n: int) -> float:
    return float(n)


@job
async def two_types(ctx: Context) -> Result[int, str]:
    raise NotImplementedError(ctx.id)


# ── arguments ───────────────────────────────────────────────────────────────────────────────────────────────────

add("1", b=2)  # E
add(1, b="2")  # E
add(1)  # E
add()  # E
add(1, 2, 3)  # E
add(1, b=2, c=3)  # E
add(1, 2, b=2)  # E
fetch(1)  # E
fetch()  # E
fetch("u", ctx=None)  # E
nothing("x")  # E
thumbnail("text")  # E
thumbnail(b"", 3)  # E
thumbnail(b"", size="big")  # E
crunch("3")  # E


# ── results ─────────────────────────────────────────────────────────────────────────────────────────────────────

as_text: Job[str, str] = add(1, 2)  # E
own: str = add.decode_result(b"1")  # E
swapped: Job[str, int] = two_types()  # E
handed_on: Job[int, int] = two_types()  # E


@job
async def forged(ctx: Context) -> Result[int, int]:
    return ctx.result("text")  # E


@job
async def forgot(ctx: Context) -> Result[str, str]:
    return ctx.void()  # E


def by_a_text(error: BaseException, attempt: str) -> Decision:
    return "abort" if attempt in str(error) else None


# ── options ─────────────────────────────────────────────────────────────────────────────────────────────────────

add(1, 2).using(dely=3)  # E
add(1, 2).using(delay="3")  # E
add(1, 2).using(priority=1.5)  # E
add(1, 2).using(idempotency_scope="all")  # E
add(1, 2).using(on_failure=3)  # E
add(1, 2).again(3)  # E
job(timeot=3)  # E
job(timeout="3")  # E
job(retry_on=3)  # E
job(executor="fiber")  # E
job(executor="process", delay=3)  # E
batch_job(max_batches="2")  # E
job(decide=lambda error: 1j)  # E
job(decide=lambda error, attempt: 1j)  # E
job(decide=lambda: "retry")  # E
job(decide=by_a_text)  # E
options: EnqueueOptions = {"delay": 1, "prio": 2}  # E


# ── async functions elsewhere than on the loop ──────────────────────────────────────────────────────────────────


@job(executor="process")
async def async_in_a_process(ctx: Context, n: int) -> float:
    return float(n) + ctx.attempt


@job(executor="process", memory_mb=1)
async def async_without_a_context(n: int) -> None:
    print(n)


@job(executor="thread")
async def async_in_a_thread(n: int) -> float:
    return float(n)


@batch_job(executor="thread")
async def async_batch_in_a_thread(items: list[int]) -> list[int]:
    return items


async_in_a_process(3)  # E
async_without_a_context(3)  # E
async_in_a_thread(3)  # E
async_batch_in_a_thread(3)  # E
App(jobs=[add, async_in_a_process])  # E
App(jobs=async_in_a_thread)  # E


# ── immutable ───────────────────────────────────────────────────────────────────────────────────────────────────

add(1, 2).id = "x"  # E
add.name.upper = "x"  # E


# ── workflows ───────────────────────────────────────────────────────────────────────────────────────────────────


async def waited(text: str, *, times: int = 1) -> str:
    return text * times


def at_once(text: str) -> str:
    return text


def fold(existing: str | None, value: int) -> str:
    return f"{existing} {value}"


async def in_a_handler(ctx: Context) -> None:
    ctx.queue(3)  # E
    ctx.queue(add(1, 2)).next()  # E
    ctx.queue(ctx.result(5), add(1, 2))  # E
    ctx.queue(add(1, 2), ctx.result("x"))  # E
    ctx.queue(ctx.result(5, append="sum"))  # E
    ctx.queue(ctx.result(5).next(add(1, 2)))  # E
    ctx.queue(ctx.continue_with(add(1, 2)))  # E
    ctx.queue(*[ctx.result(5)])  # E
    ctx.queue(add)  # E
    ctx.queue([add(1, 2)])  # E
    ctx.queue(add(1, 2), delay=3)  # E
    ctx.queue(add(1, 2)).next("x")  # E
    ctx.queue(add(1, 2)).next(ctx.result(5))  # E
    ctx.result(5).next(add(1, 2), ctx.result(6))  # E
    ctx.queue(add(1, 2)).next(add(1, 2), when="sometimes")  # E
    ctx.queue(add(1, 2)).next(add(1, 2), on_unsatisfied="ignore")  # E
    ctx.queue(add(1, 2)).next(add(1, 2), dely=3)  # E
    ctx.continue_with(add)  # E
    ctx.continue_with(ctx.queue(add(1, 2)))  # E
    ctx.result(1, append="product")  # E
    ctx.result("x", append="sum")  # E
    ctx.result(3, append="merge")  # E
    ctx.result("x", append=fold)  # E
    ctx.result(1, final=True, append="list")  # E
    await ctx.step("a", waited, 3)  # E
    await ctx.step("a", waited, "x", tims=2)  # E
    await ctx.step("a", at_once, 3)  # E
    number: int = await ctx.step("a", at_once, "x")  # E
    print(number)
    await ctx.step(waited, "x")  # E
    await ctx.sleep("3")  # E
    await ctx.wait_for(3)  # E
    ctx.sync.step("a", at_once, 3)  # E
    ctx.dependencies[0].id = "x"  # E
    ctx.dependencies[0].result_of("fetch")  # E
    ctx.dependencies[0].group_of(3)  # E
    ctx.chain_id = "x"  # E


@job
async def narrow_group(ctx: Context) -> Result[None, int]:
    return ctx.queue(add(1, 2)).next(fetch("u"))  # E


@job
async def wrong_own(ctx: Context) -> Result[int, int]:
    return ctx.queue(add(1, 2))  # E


@job
async def wrong_chain(ctx: Context) -> Result[int, int]:
    return ctx.continue_with(fetch("u"))  # E


add(1, 2).using(depends_on=3)  # E
add(1, 2).using(depends_on=[3])  # E
add(1, 2).using(depends_on="a", when="all")  # E
add(1, 2).using(depends_on="a", when=3)  # E
add(1, 2).using(depends_on="a", gate_timeout="3")  # E
Count("3")  # E
Count(3, of="failed")  # E
Group(3)  # E


@batch_job(size=3)
async def insert(rows: list[str]) -> list[int]:
    return [len(row) for row in rows]


insert(3)  # E
insert(["x"])  # E
insert("x", "y")  # E
insert(rows="x")  # E
batch_job(size="3")  # E
batch_job(executor="process")  # E
as_row: Job[str, str] = insert("x")  # E


schedule("s", evry=60, job=insert("x"))  # E
schedule("s", every="hour", job=insert("x"))  # E
schedule("s", every=60, job=insert)  # E
schedule("s", every=60, job=insert("x"), missed="never")  # E
schedule("s", every=60, run=lambda: insert("x"))  # E


@batch_job()  # E
async def insert_one(row: str) -> list[int]:
    return [len(row)]


@batch_job()  # E
async def insert_for_one(rows: list[str]) -> int:
    return len(rows)


# ── the user's transaction ──────────────────────────────────────────────────────────────────────────────────────


async def uses_no_connection(app: App) -> None:
    await app.enqueue(add(1, 2), connection="postgresql://here")  # E
    await app.enqueue_many([add(1, 2)], connection=3)  # E
    app.sync.enqueue(add(1, 2), connection=create_engine("sqlite://"))  # E
    add(1, 2).using(connection=None)  # E


# ── middlewares ─────────────────────────────────────────────────────────────────────────────────────────────────


def not_async(ctx: Context, call_next: CallNext) -> object:
    return call_next()


async def one_alone(ctx: Context) -> object:
    return ctx


async def of_an_argument(ctx: Context, call_next: CallNext) -> object:
    ctx.provide("kind", "text")  # E
    number: int = ctx.resource(str)  # E
    await call_next(number)  # E
    return await call_next()


right: Middleware = of_an_argument
App(middlewares=[not_async])  # E
App(middlewares=[one_alone])  # E
App(middlewares=of_an_argument)
job(requires=[one_alone])  # E
job(memory_mb="1")  # E
job(memory_mb=1)  # E
job(executor="thread", memory_mb=1)  # E
batch_job(memory_mb=1)  # E
App().worker(redrive=Redrive(batch=1))  # E
App().worker(redrive=Redrive(types=[1]))  # E


# ── clients of one tenant ───────────────────────────────────────────────────────────────────────────────────────


async def beyond_a_tenant(app: App) -> None:
    acme = app.tenant("acme")
    await acme.quotas()  # E
    await acme.workers()  # E
    await acme.drain_worker("1")  # E
    acme.tenant("bravo")  # E
    acme.operator("bravo")  # E
    await acme.set_limit(queue="mail", concurrency=1, every_tenant=True)  # E
    await acme.remove_limit(queue="mail", every_tenant=True)  # E
    await acme.limits(every_tenant=True)  # E
    acme.events(every_tenant=True)  # E
    app.sync.tenant("acme").quotas()  # E
    app.sync.tenant("acme").workers()  # E
    app.sync.tenant("acme").limits(every_tenant=True)  # E


async def forgets_an_await(app: App) -> None:
    app.enqueue(add(1, 2))  # E by mypy
    app.tenant("acme").enqueue(add(1, 2), delay=5)  # E by mypy
    app.cancel("1")  # E
