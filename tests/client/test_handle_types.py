"""`app.handle(id, type)` for a job of another type: its waits raise at once, and name both types."""

from __future__ import annotations

from typing import Any

import pytest

from ropewalk import Context, InvalidInput, JobType, NotFound, Result, job
from tests.apps import MakeApp


@job
async def count() -> int:
    return 7


@job
async def name() -> str:
    return "ada"


@job
async def begins(ctx: Context) -> Result[str, str]:
    return ctx.continue_with(name())


TOLD = r"job .* is of type 'count', and this handle was made for 'name': pass the type that the job has to handle\(\)"


@pytest.mark.parametrize("verb", ["result", "group", "chain"])
@pytest.mark.parametrize("delay", [0, 3600], ids=["done", "waiting"])
async def test_each_wait_raises(make_app: MakeApp, verb: str, delay: int) -> None:
    """Also where the job waits for an hour, or for ever."""
    app = make_app(count, name)
    async with app.running():
        made = await app.enqueue(count(), delay=delay)
        if not delay:
            await made.result(timeout=5)
        handle = app.handle(made.id, name)
        for _ in range(2):
            with pytest.raises(InvalidInput, match=TOLD) as caught:
                await getattr(handle, verb)(timeout=5)
            assert caught.value.field == "job_type"
        assert (await handle.status()).type == "count"


async def test_the_right_type_is_as_before(make_app: MakeApp) -> None:
    """A chain may end with a job of another type."""
    app = make_app(count, name, begins)
    async with app.running():
        made, chain = await app.enqueue(count()), await app.enqueue(begins())
        assert await app.handle(made.id, count).result(timeout=5) == 7
        assert await app.handle(made.id, count).group(timeout=5) == 7
        assert await app.handle(chain.id, begins).result(timeout=5) == "ada"
        assert await app.handle(chain.id, begins).chain(timeout=5) == "ada"
        with pytest.raises(NotFound, match="no job 'nobody'"):
            await app.handle("nobody", count).result(timeout=5)


async def test_a_type_of_the_same_name_fits(make_app: MakeApp) -> None:
    """The name is what is stored with a job; the function may be another one, as in another program."""

    async def other() -> int:
        raise AssertionError("it runs elsewhere")

    elsewhere: JobType[..., int, int] = job(name="count")(other)
    app = make_app(count)
    async with app.running():
        made = await app.enqueue(count())
        assert await app.handle(made.id, elsewhere).result(timeout=5) == 7


def test_the_blocking_client_raises_too(new_app: MakeApp) -> None:
    app = new_app(count, name)
    with app.sync as client:
        made = client.enqueue(count())
        wrong: Any = client.handle(made.id, name)
        with pytest.raises(InvalidInput, match=TOLD):
            wrong.result()
