"""R15: what cannot be a middleware is refused where it is given, by name."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable

import pytest

from ropewalk import App, CallNext, Context, DefinitionError, job
from ropewalk.definitions.middleware import Middleware


def sync(ctx: Context, call_next: CallNext) -> object:
    return call_next()


async def takes_one(ctx: Context) -> object:
    return ctx


async def takes_three(ctx: Context, call_next: CallNext, more: int) -> object:
    return more


async def yields(ctx: Context, call_next: CallNext) -> AsyncIterator[object]:
    yield await call_next()


class Given:
    async def __call__(self, ctx: Context, call_next: CallNext) -> object:
        return await call_next()


class Wrong:
    def __call__(self, ctx: Context, call_next: CallNext) -> object:
        return call_next()


async def right(ctx: Context, call_next: CallNext) -> object:
    return await call_next()


async def with_a_default(ctx: Context, call_next: CallNext, more: int = 1) -> object:
    return await call_next()


async def configured(setting: int, ctx: Context, call_next: CallNext) -> object:
    return await call_next()


@functools.wraps(right)
def wrapped(ctx: Context, call_next: CallNext) -> object:
    return right(ctx, call_next)


REFUSED = [
    (sync, "sync is not async"),
    (takes_one, r"takes_one takes \(ctx"),
    (takes_three, r"takes_three takes \(ctx"),
    (yields, "yields yields: where it does, `await call_next"),
    (Given, "Given is a class: give an object of it"),
    (Wrong(), "Wrong is not async"),
    (7, "int is 7, which cannot be called"),
]


@pytest.mark.parametrize(("given", "told"), REFUSED)
def test_the_app_refuses_it(given: Middleware, told: str) -> None:
    with pytest.raises(DefinitionError, match=f"^App: middlewares: {told}.*write `async def middleware"):
        App("memory://", middlewares=[right, given])


@pytest.mark.parametrize(("given", "told"), REFUSED)
def test_a_type_refuses_it(given: Middleware, told: str) -> None:
    with pytest.raises(DefinitionError, match=f"handler: middlewares: {told}"):
        job(middlewares=[given])(handler)


@pytest.mark.parametrize(("given", "told"), [each for each in REFUSED if each[0] is not Given])
def test_it_cannot_be_required(given: Middleware, told: str) -> None:
    with pytest.raises(DefinitionError, match=f"handler: requires: {told}"):
        job(requires=[given])(handler)


@pytest.mark.parametrize(
    "given", [right, Given(), with_a_default, functools.partial(configured, 1), wrapped, Given().__call__]
)
def test_whatever_can_be_awaited_with_two_is_one(given: Middleware) -> None:
    assert App("memory://", middlewares=[given]).settings.middlewares == (given,)


@pytest.mark.parametrize("field", ["middlewares", "requires"])
def test_one_alone_means_that_one(field: str) -> None:
    options: dict[str, Callable[..., object]] = {field: right}
    of_type = job(**options)(handler)  # type: ignore[call-overload] # the annotation asks for a list
    assert getattr(of_type.options, field) == (right,)
    assert App("memory://", middlewares=right).settings.middlewares == (right,)


async def handler() -> None:
    pass
