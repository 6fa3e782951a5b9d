"""The same workflows with handlers that declare no return type: pyright finds both types. Never run."""

from __future__ import annotations

from typing import Never, assert_type

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.decorator import job
from tests.typing.workflows import (
    Receipt,
    Report,
    approved,
    charge,
    eight,
    fetch,
    five,
    four,
    longest,
    notify,
    one,
    report,
    reserve,
    seven,
    six,
    stock,
    three,
    two,
    words,
)


@job
async def nightly(ctx: Context, ids: list[str]):
    return ctx.queue(*(fetch(url=each) for each in ids)).next(report(parts=len(ids)))


@job
async def order_flow(ctx: Context, order: str):
    if not await ctx.step("reserve", reserve, order, pieces=1):
        return ctx.continue_with(charge(order, 0))
    return ctx.continue_with(approved(order))


@job
async def either(ctx: Context, order: str):
    if not order:
        return None
    return ctx.queue(stock(order)).next(charge(order, 3), when="all_done")


@job
async def map_reduce(ctx: Context, texts: list[str]):
    return ctx.queue(*(words(each) for each in texts))


@job
async def folded(ctx: Context, text: bytes):
    return ctx.result(text, append=longest)


@job
def in_thread(ctx: Context, text: str):
    return ctx.result(len(text), append="list")


@job(executor="process")
def in_process(ctx: Context, text: str):
    return ctx.result(len(text)).next(two(2))


@job
async def silent(ctx: Context):
    return ctx.queue(notify("x"))


@job
async def all_kinds(ctx: Context):
    kinds = ctx.queue(one(1), two(2), three(3), four(4), five(5), six(6), seven(7), eight(8))
    return ctx.queue(kinds).next(report(1))


@job
async def mixed_list(ctx: Context):
    return ctx.queue(*[one(1), two(2)])


assert_type(nightly(["a"]), Job[None, bytes | Report])
assert_type(order_flow("o"), Job[Receipt, Receipt])
assert_type(either("o"), Job[None, int | Receipt])
assert_type(map_reduce(["a"]), Job[None, list[list[str]]])
assert_type(folded(b""), Job[bytes, str])
assert_type(in_thread("x"), Job[int, list[int]])
assert_type(in_process("x"), Job[int, int | str])
assert_type(silent(), Job[None, Never])
assert_type(
    all_kinds(),
    Job[None, int | str | bytes | float | list[int] | dict[str, int] | tuple[int, int] | set[int] | Report],
)
assert_type(mixed_list(), Job[None, int | str])
