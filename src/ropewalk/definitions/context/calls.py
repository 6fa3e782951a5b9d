"""The calls of a context that have to be awaited, and which of them the handler forgot to await.

The calls stay plain coroutines, so that everything that takes a coroutine (gather, wait_for, a TaskGroup) takes them.
Only calls that have not begun are remembered, so a handler that awaits one after another keeps one of them at most.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar, cast

from msgspec import Struct

Verb = TypeVar("Verb", bound=Callable[..., Coroutine[Any, Any, Any]])
NAMED_MAX: Final = 3

_mark: Final[Callable[[Any], Any]] = getattr(inspect, "markcoroutinefunction", lambda call: call)
"""From Python 3.12 on, inspect tells that such a verb makes a coroutine; before, only calling it does."""


class Call(Struct, frozen=True, eq=False):
    """One call of a verb: what it is named in the handler, what to write instead, and where it stands."""

    work: Coroutine[Any, Any, Any]
    name: str
    blocking: str
    file: str
    line: int

    @property
    def begun(self) -> bool:
        return inspect.getcoroutinestate(self.work) != inspect.CORO_CREATED

    def __str__(self) -> str:
        return f"{self.name}(...) at {self.file}:{self.line}"


class Calls:
    """The calls of one attempt. Handlers in threads add to it from there."""

    def __init__(self) -> None:
        self._made: list[Call] = []

    def add(self, call: Call) -> None:
        # By slices, which raise nothing where another thread was faster.
        while (last := self._made[-1:]) and last[0].begun:
            del self._made[-1:]
        self._made.append(call)

    def forgotten(self) -> str | None:
        """The handler returned: what it forgot and what to do, or None. Closes those calls, they never begin."""
        left = [each for each in self._made if not each.begun]
        if not left:
            return None
        for each in left:
            each.work.close()
        named = ", ".join(str(each) for each in left[:NAMED_MAX])
        more = f" and {len(left) - NAMED_MAX} more" if len(left) > NAMED_MAX else ""
        was = "was" if len(left) == 1 else "were"
        return (
            f"{named}{more} {was} not awaited before the handler returned, and did nothing: write "
            f"`await {left[0].name}(...)`, or in a plain function {left[0].blocking}"
        )


class Calling(Protocol):
    """What has verbs that are to be awaited."""

    def calls(self) -> Calls: ...


def to_be_awaited(blocking: str, owner: str = "ctx") -> Callable[[Verb], Verb]:
    """A verb whose call is remembered until it begins. `blocking` is what a plain function writes instead."""

    def remembered(verb: Verb) -> Verb:
        name = f"{owner}.{verb.__name__}"

        @functools.wraps(verb)
        def call(self: Calling, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
            work = verb(self, *args, **kwargs)
            caller = sys._getframe(1)
            self.calls().add(Call(work, name, blocking, caller.f_code.co_filename, caller.f_lineno))
            return work

        return cast("Verb", _mark(call))

    return remembered
