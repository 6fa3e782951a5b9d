"""Calls that must not check: an error on every line marked `# E`, and on no other. Read by the checkers, never run."""

from __future__ import annotations

from ropewalk.definitions.context import Context
from ropewalk.definitions.decorator import job
from ropewalk.definitions.job import Job
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.definitions.result import Result


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
job(decide=lambda error: 1j)  # E
options: EnqueueOptions = {"delay": 1, "prio": 2}  # E


# ── immutable ───────────────────────────────────────────────────────────────────────────────────────────────────

add(1, 2).id = "x"  # E
add.name.upper = "x"  # E
