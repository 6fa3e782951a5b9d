"""Three workflows with annotated handlers, and the types they must have. Read by both checkers, never run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Never, assert_type

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.context.related_jobs import Dependency
from ropewalk.definitions.dependency import Chain, Count, Group
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.batch_decorator import batch_job
from ropewalk.definitions.job_types.batch_items import Batch
from ropewalk.definitions.job_types.decorator import job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.results.results import Result


@dataclass
class Report:
    parts: int


@dataclass
class Receipt:
    number: str


# ── a report: fan out, fan in ───────────────────────────────────────────────────────────────────────────────────


@job
async def fetch(ctx: Context, url: str) -> bytes:
    return f"{ctx.id} {url}".encode()


@job
async def report(ctx: Context, parts: int) -> Report:
    assert_type(ctx.dependencies, tuple[Dependency, ...])
    assert_type(ctx.dependencies[0].id, str)
    assert_type(ctx.dependencies[0].result_of(fetch), bytes)
    assert_type(ctx.dependencies[0].group_of(words), list[list[str]])
    assert_type(ctx.dependencies[0].group_of(map_reduce), list[list[str]])
    assert_type(ctx.dependencies[0].group_of(folded), str)
    return Report(parts)


@job
async def notify(text: str) -> None:
    print(text)


@job
async def nightly(ctx: Context, ids: list[str]) -> Result[None, bytes | Report]:
    return ctx.queue(*(fetch(url=each) for each in ids)).next(report(parts=len(ids)))


@job
async def nightly_told(ctx: Context, ids: list[str]) -> Result[None, bytes | Report]:
    fetched = ctx.queue(*[fetch(each) for each in ids])
    assert_type(fetched, Result[None, bytes])
    reported = fetched.next(report(len(ids)), when="any_success", on_unsatisfied="skip", gate_timeout=60)
    assert_type(reported, Result[None, bytes | Report])
    told = reported.next(notify("done"), when=Count(1, of="done"), delay=3)
    assert_type(told, Result[None, bytes | Report])
    return told


assert_type(nightly(["a"]), Job[None, bytes | Report])
assert_type(nightly_told(["a"]), Job[None, bytes | Report])


# ── an order: continuation and compensation ─────────────────────────────────────────────────────────────────────


@job
async def refund(order: str) -> None:
    print(order)


@job(on_failure=refund)
async def charge(order: str, cents: int) -> Receipt:
    return Receipt(f"{order} {cents}")


@job
async def approved(ctx: Context, order: str) -> Result[Receipt, Receipt]:
    await ctx.sleep(timedelta(hours=1))
    answer: bool = await ctx.wait_for("approval", timeout=3600)
    return ctx.continue_with(charge(order, cents=100 if answer else 0))


@job
async def stock(order: str) -> int:
    return len(order)


async def reserve(order: str, *, pieces: int) -> float:
    return float(len(order) * pieces)


def weigh(order: str) -> float:
    return float(len(order))


@job
async def order_flow(ctx: Context, order: str) -> Result[Receipt, Receipt] | None:
    assert_type(await ctx.step("reserve", reserve, order, pieces=2), float)
    assert_type(await ctx.step("weigh", weigh, order), float)
    if not order:
        return None
    result = ctx.continue_with(approved(order))
    assert_type(result, Result[Receipt, Receipt])
    return result


@job
def order_in_thread(ctx: Context, order: str) -> Result[float, float]:
    weight = ctx.sync.step("weigh", weigh, order)
    assert_type(weight, float)
    ctx.sync.sleep(3)
    ctx.sync.wait_for("truck", timeout=60)
    return ctx.result(weight)


@job
async def with_value(ctx: Context, order: str) -> Result[int, int | Receipt]:
    result = ctx.result(len(order)).next(charge(order, 3))
    assert_type(result, Result[int, int | Receipt])
    return result


assert_type(approved("o"), Job[Receipt, Receipt])
assert_type(order_flow("o"), Job[Receipt | None, Receipt])
assert_type(order_in_thread("o"), Job[float, float])
assert_type(with_value("o"), Job[int, int | Receipt])


# ── map and reduce: append ──────────────────────────────────────────────────────────────────────────────────────


def longest(existing: str | None, value: bytes) -> str:
    return max(existing or "", value.decode(), key=len)


@job
async def words(ctx: Context, text: str) -> Result[list[str], list[list[str]]]:
    return ctx.result(text.split(), append="list")


@job
async def count(ctx: Context, text: str) -> Result[str, int]:
    return ctx.result(text, append="count")


@job
async def total(ctx: Context, number: float) -> Result[float, float]:
    return ctx.result(number, append="sum")


@job
async def tally(ctx: Context, text: str) -> Result[dict[str, int], dict[str, int]]:
    return ctx.result({text: 1}, append="merge")


@job
async def folded(ctx: Context, text: bytes) -> Result[bytes, str]:
    return ctx.result(text, append=longest)


@job
async def map_reduce(ctx: Context, texts: list[str]) -> Result[None, list[list[str]]]:
    return ctx.queue(*(words(each) for each in texts))


async def appended(ctx: Context) -> None:
    assert_type(ctx.result(3), Result[int, int])
    assert_type(ctx.result(3, final=True), Result[int, int])
    assert_type(ctx.result("x", append="list"), Result[str, list[str]])
    assert_type(ctx.result("x", append="count"), Result[str, int])
    assert_type(ctx.result(3, append="sum"), Result[int, int])
    assert_type(ctx.result(3.5, append="min"), Result[float, float])
    assert_type(ctx.result({"a": 1}, append="merge"), Result[dict[str, int], dict[str, int]])
    assert_type(ctx.result(b"x", append=longest), Result[bytes, str])


assert_type(words("a b"), Job[list[str], list[list[str]]])
assert_type(count("a"), Job[str, int])
assert_type(total(1), Job[float, float])
assert_type(tally("a"), Job[dict[str, int], dict[str, int]])
assert_type(folded(b"a"), Job[bytes, str])
assert_type(map_reduce(["a"]), Job[None, list[list[str]]])


# ── up to eight kinds, lists, nesting ───────────────────────────────────────────────────────────────────────────


@job
async def one(a: int) -> int:
    return a


@job
async def two(a: int) -> str:
    return str(a)


@job
async def three(a: int) -> bytes:
    return bytes(a)


@job
async def four(a: int) -> float:
    return float(a)


@job
async def five(a: int) -> list[int]:
    return [a]


@job
async def six(a: int) -> dict[str, int]:
    return {"a": a}


@job
async def seven(a: int) -> tuple[int, int]:
    return a, a


@job
async def eight(a: int) -> set[int]:
    return {a}


@job
async def all_kinds(
    ctx: Context,
) -> Result[None, int | str | bytes | float | list[int] | dict[str, int] | tuple[int, int] | set[int] | Report]:
    a, b, c, d, e, f, g, h = one(1), two(2), three(3), four(4), five(5), six(6), seven(7), eight(8)
    return ctx.queue(a, b, c, d, e, f, g, h).next(report(1))


@job
async def all_kinds_next(
    ctx: Context,
) -> Result[None, Report | int | str | bytes | float | list[int] | dict[str, int] | tuple[int, int] | set[int]]:
    a, b, c, d, e, f, g, h = one(1), two(2), three(3), four(4), five(5), six(6), seven(7), eight(8)
    return ctx.queue(report(1)).next(a, b, c, d, e, f, g, h, priority=3)


async def in_parts(ctx: Context) -> None:
    assert_type(ctx.queue(one(1)), Result[None, int])
    assert_type(ctx.queue(one(1), two(2)), Result[None, int | str])
    assert_type(ctx.queue(one(1), two(2), three(3)), Result[None, int | str | bytes])
    assert_type(ctx.queue(one(1), notify("x")), Result[None, int])
    assert_type(ctx.queue(notify("x")), Result[None, Never])
    assert_type(ctx.void(), Result[None, Never])
    assert_type(ctx.void().next(one(1)), Result[None, int])
    nested = ctx.queue(one(1)).next(two(2))
    assert_type(ctx.queue(nested, three(3)), Result[None, int | str | bytes])
    assert_type(ctx.queue(five(5)).next(nested, six(6)), Result[None, list[int] | int | str | dict[str, int]])
    ten = [one(each) for each in range(10)]
    assert_type(ctx.queue(*ten).next(*ten), Result[None, int])


# ── dependencies ────────────────────────────────────────────────────────────────────────────────────────────────

first = one(1)
assert_type(two(2).using(depends_on=first), Job[str, str])
assert_type(two(2).using(depends_on=[first, "id", Group(first), Chain("id")], when="all_done"), Job[str, str])
assert_type(two(2).using(depends_on=first, when=Count(1), on_unsatisfied="run", gate_timeout=3.5), Job[str, str])
assert_type(two(2).using(depends_on="id", allow_missing=True, gate_timeout=timedelta(days=1)), Job[str, str])


# ── batches ─────────────────────────────────────────────────────────────────────────────────────────────────────


@batch_job(size=10, max_wait=0.5, max_batches=2, queue="bulk")
async def insert(rows: list[Report]) -> list[int]:
    return [row.parts for row in rows]


@batch_job()
async def insert_some(rows: list[Report]) -> list[int | Exception]:
    return [row.parts or ValueError("empty") for row in rows]


@batch_job()
async def insert_by_position(rows: list[Report]) -> dict[int, int | Exception]:
    return {at: row.parts or ValueError("empty") for at, row in enumerate(rows)}


@batch_job()
async def queue_by_position(batch: Batch[str]) -> dict[int, Result[None, Report]]:
    return {at: ctx.queue(report(at)) for at, ctx in enumerate(batch.contexts)}


@batch_job()
async def insert_with_contexts(batch: Batch[str]) -> list[str]:
    assert_type(batch.items, list[str])
    return [f"{ctx.id} {item}" for ctx, item in zip(batch.contexts, batch.items, strict=True)]


@batch_job()
async def insert_and_queue(batch: Batch[str]) -> list[Result[None, Report]]:
    return [ctx.queue(report(len(item))) for ctx, item in zip(batch.contexts, batch.items, strict=True)]


@batch_job(executor="thread")
def insert_in_thread(rows: list[bytes]) -> tuple[float, ...]:
    return tuple(float(len(row)) for row in rows)


assert_type(insert(Report(1)), Job[int, int])
assert_type(insert_some(Report(1)), Job[int, int])
assert_type(insert_by_position(Report(1)), Job[int, int])
assert_type(queue_by_position("a"), Job[None, Report])
assert_type(insert_with_contexts("a"), Job[str, str])
assert_type(insert_and_queue("a"), Job[None, Report])
assert_type(insert_in_thread(b""), Job[float, float])
batch_type: JobType[[Report], int, int] = insert
