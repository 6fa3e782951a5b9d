"""Hints between clients and workers: they shorten waits, and any of them may be lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from msgspec import Struct


class Hint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that something was committed. An empty field says nothing about its subject."""

    ready: tuple[str, ...] = ()
    """These queues got work that can be claimed."""
    finished: tuple[str, ...] = ()
    """The ids of jobs that have ended, or some of them if there were many."""
    many: bool = False
    """Whether more jobs have ended than `finished` names."""
    control: bool = False
    """Whether a cancellation, pause, limit or schedule changed, so that workers should ask the store soon."""


Listener: TypeAlias = Callable[[Hint], None]
Unsubscribe: TypeAlias = Callable[[], None]


class Notifier(Protocol):
    """Passes hints on, as well as it can. If a hint is lost, doubled or late, everything still works, only later.

    A notifier is thread-safe: `publish` may be called from any thread, and it never blocks or raises. A listener may be
    called on any thread; it must return at once and must not raise. A publisher receives its own hints, too.
    """

    def publish(self, hint: Hint) -> None: ...

    def subscribe(self, listener: Listener) -> Unsubscribe: ...
