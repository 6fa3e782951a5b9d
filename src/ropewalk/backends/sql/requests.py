"""Calls put to a thread from any event loop, and their answers on the way back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from ropewalk.backends.sql.tx import Tx

T = TypeVar("T")


class Request(Generic[T]):
    """Made on the loop that waits for it; answered from the thread that does the work."""

    __slots__ = ("_error", "_value", "answer", "last", "loop", "work")

    def __init__(self, work: Callable[[Tx], T], *, last: bool = False) -> None:
        self.work = work
        self.last = last
        """the thread ends with it"""
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[T] = self.loop.create_future()
        self._value: T | None = None
        self._error: BaseException | None = None

    @property
    def wanted(self) -> bool:
        """False when whoever asked has gone."""
        return not self.answer.cancelled()

    @property
    def failed(self) -> bool:
        return self._error is not None

    def succeed(self, value: T) -> None:
        self._value = value

    def fail(self, error: BaseException) -> None:
        self._error = error

    def settle(self) -> None:
        """On the loop that waits."""
        if self.answer.done():
            return
        if self._error is not None:
            self.answer.set_exception(self._error)
        else:
            self.answer.set_result(self._value)  # type: ignore[arg-type]  # None only where T is


def deliver(requests: Iterable[Request[Any]]) -> None:
    """Hand out the answers: one call into each waiting loop, not one a request."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Request[Any]]] = {}
    for request in requests:
        by_loop.setdefault(request.loop, []).append(request)
    here = _running_loop()
    for loop, answered in by_loop.items():
        if loop is here:
            _settle(answered)
            continue
        try:
            loop.call_soon_threadsafe(_settle, answered)
        except RuntimeError:
            continue  # that loop is closed: nobody waits any more


def _settle(answered: list[Request[Any]]) -> None:
    for request in answered:
        request.settle()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
