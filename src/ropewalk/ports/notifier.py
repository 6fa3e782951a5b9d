"""Wake-ups between clients and workers: hints that shorten latency and may always be lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from msgspec import Struct


class Hint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something committed. Empty collections say nothing about that side."""

    ready: tuple[str, ...] = ()
    """queues that got claimable work"""
    finished: tuple[str, ...] = ()
    """ids of jobs that became terminal (a part of them, if there were many: then `many` is set)"""
    many: bool = False
    control: bool = False
    """a cancellation, pause, resume, limit or schedule changed: ask the store soon"""


Listener: TypeAlias = Callable[[Hint], None]
Unsubscribe: TypeAlias = Callable[[], None]


class Notifier(Protocol):
    """Best effort. Nothing is ever wrong because a hint was lost, doubled or late; it is only slower.

    Thread-safe: `publish` may be called from any thread and never blocks or raises. A listener may be called on
    any thread, must return at once and must not raise. A publisher hears its own hints.
    """

    def publish(self, hint: Hint) -> None: ...

    def subscribe(self, listener: Listener) -> Unsubscribe: ...
