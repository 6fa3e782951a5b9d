"""The middlewares around a handler form a chain: each of them is a layer that calls the next one.

A chain is put together once for each job type and entered once for each attempt. It does not know what is inside: a
coroutine on the loop, a thread, a process or a batch. A type without middlewares has no chain at all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeAlias

from ropewalk.definitions.context.context import Context
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.middleware import Middleware, middleware_name

Inside: TypeAlias = Callable[[], Coroutine[Any, Any, object]]


class MiddlewareChain:
    """The middlewares of one type, the first outermost."""

    def __init__(self, layers: tuple[Middleware, ...]) -> None:
        assert layers, "a type without middlewares has no chain"
        self._layers = layers

    async def run(self, ctx: Context, inside: Inside) -> object:
        """Calls the outermost middleware and returns its value. The innermost middleware starts `inside` if it calls
        `call_next()`."""
        entered = _Entered(self._layers, ctx, inside)
        value = await entered.layer(0)
        if not entered.inside_begun:
            ctx.without_steps()
        return value


def middleware_chains_of(
    types: Iterable[JobType[..., Any, Any]], middlewares: Sequence[Middleware]
) -> dict[str, MiddlewareChain]:
    """Returns the chain of each type by its name. The middlewares of the app are outside those of the type."""
    layers = {each.name: (*middlewares, *each.options.middlewares) for each in types}
    return {name: MiddlewareChain(around) for name, around in layers.items() if around}


class _Entered:
    """The run of one attempt through the chain."""

    __slots__ = ("ctx", "inside", "inside_begun", "layers")

    def __init__(self, layers: tuple[Middleware, ...], ctx: Context, inside: Inside) -> None:
        self.layers = layers
        self.ctx = ctx
        self.inside = inside
        self.inside_begun = False

    async def layer(self, index: int) -> object:
        """Calls one middleware and returns its value."""
        call_next = _Next(self, index)
        value = await self.layers[index](self.ctx, call_next)
        # This is checked for each layer, so that the layers outside see a mistake as an error like any other.
        call_next.over()
        return value

    def after(self, index: int) -> Coroutine[Any, Any, object]:
        """Returns the coroutine of the next layer, or of the handler if this was the last one."""
        if index + 1 < len(self.layers):
            return self.layer(index + 1)
        self.inside_begun = True
        return self.inside()


class _Next:
    """The `call_next` of one layer, for one attempt."""

    __slots__ = ("_entered", "_index", "_is_over", "_made")

    def __init__(self, entered: _Entered, index: int) -> None:
        self._entered = entered
        self._index = index
        self._made: Coroutine[Any, Any, object] | None = None
        self._is_over = False

    def __call__(self, ctx: Context | None = None, /) -> Coroutine[Any, Any, object]:
        if self._is_over:
            raise RuntimeError(f"call_next() was called after the middleware {self._name} had ended")
        if self._made is not None:
            raise RuntimeError(
                f"the middleware {self._name} called call_next() twice: an attempt runs its handler once; "
                "raise Retry to have it run again"
            )
        if ctx is not None and ctx is not self._entered.ctx:
            raise TypeError(f"the middleware {self._name} called call_next({ctx!r}): give its own ctx, or nothing")
        self._made = self._entered.after(self._index)
        return self._made

    def over(self) -> None:
        """Checks, when a middleware has returned, that its `call_next()` has ended."""
        self._is_over = True
        made = self._made
        if getattr(made, "cr_frame", None) is None:
            return  # It was not called, or it has ended. Every job comes here; the slow `inspect` is for mistakes only.
        assert inspect.iscoroutine(made)
        if inspect.getcoroutinestate(made) == inspect.CORO_CREATED:
            made.close()
            raise RuntimeError(f"the middleware {self._name} did not await call_next(): write `await call_next()`")
        raise RuntimeError(f"the middleware {self._name} returned before its call_next() had ended: await it")

    @property
    def _name(self) -> str:
        return middleware_name(self._entered.layers[self._index])
