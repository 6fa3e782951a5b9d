"""Long names in what a completion brings with it: refused by name, after one run of the handler and on every store."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ropewalk import Context, InvalidInput, Result, State, job
from ropewalk.domain import bounds
from tests.apps import MakeApp

LETTERS = random.Random(2)


def long_name(chars: int) -> str:
    """Of letters that take three bytes each and cannot be compressed."""
    return "".join(chr(LETTERS.randrange(0x4E00, 0x9FFF)) for _ in range(chars))


starts: list[int] = []


@pytest.fixture(autouse=True)
def _no_starts() -> None:
    starts.clear()


def child_and_parent(chars: int) -> tuple[Any, Any]:
    kid_name, queue, limit = (long_name(chars) for _ in range(3))

    @job(name=kid_name)
    async def kid(x: int) -> int:
        return x

    @job(max_attempts=5)
    async def parent(ctx: Context) -> Result[None, int]:
        starts.append(ctx.attempt)
        return ctx.queue(kid(1).using(queue=queue, limit=limit))

    return kid, parent


async def test_the_longest_names_that_are_allowed_fit_together(make_app: MakeApp) -> None:
    kid, parent = child_and_parent(213)
    app = make_app(kid, parent)
    tenant = app.tenant(long_name(213))
    async with app.running():
        handle = await tenant.enqueue(parent())
        assert await handle.group(timeout=20) == 1
        await tenant.enqueue(kid(2), idempotency_key=long_name(213))


async def test_a_name_that_is_too_long_is_refused_where_it_is_given(make_app: MakeApp) -> None:
    kid, _ = child_and_parent(20)
    app = make_app(kid)
    wrong: Any
    for field in ("queue", "limit", "idempotency_key", "fairness", "workflow_id", "id"):
        with pytest.raises(InvalidInput, match=f"{field} has 642 bytes in UTF-8, over the 640"):
            wrong = {field: long_name(214)}
            await app.enqueue(kid(1), **wrong)
    with pytest.raises(InvalidInput, match="tenant has 642 bytes"):
        app.tenant(long_name(214))


async def test_a_handler_that_queues_such_a_name_runs_once(make_app: MakeApp) -> None:
    kid, parent = child_and_parent(214)
    app = make_app(kid, parent)
    async with app.running():
        info = await app.wait((await app.enqueue(parent())).id, timeout=20)
    assert (info.state, starts) == (State.FAILED, [1])
    assert info.error is not None
    assert "has 642 bytes in UTF-8" in info.error.message


@pytest.mark.parametrize("store_kind", ["postgres"], indirect=True)
async def test_a_completion_that_the_store_cannot_keep_fails_at_once(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the reason: here an index of PostgreSQL, which the bound would otherwise protect."""
    monkeypatch.setattr(bounds, "NAME_BYTES_MAX", 3 * 256)
    kid, parent = child_and_parent(256)
    app = make_app(kid, parent)
    tenant = app.tenant(long_name(256))
    async with app.running():
        info = await tenant.wait((await tenant.enqueue(parent())).id, timeout=20)
    assert (info.state, starts, info.crashes) == (State.FAILED, [1], 0)
    assert info.error is not None
    assert "it completed, but what should follow was refused: a value cannot be stored" in info.error.message
