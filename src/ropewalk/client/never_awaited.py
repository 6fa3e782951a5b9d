"""Enqueues that were built and never awaited: a warning, or whoever listens hears of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ropewalk.errors import NeverEnqueued

_listeners: list[Callable[[str], object]] = []


def dropped(name: str, file: str, line: int) -> None:
    message = f"enqueue({name}) at {file}:{line} was never awaited: nothing was queued"
    if _listeners:
        _listeners[-1](message)
    else:
        warnings.warn_explicit(NeverEnqueued(message), NeverEnqueued, file, line)


@contextmanager
def on_dropped(listener: Callable[[str], object]) -> Generator[None]:
    """Listen instead of warning: an error raised from a destructor would reach nobody."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
