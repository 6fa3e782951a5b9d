"""Hints inside one process: the listeners are called at once, on the thread of the publisher."""

from __future__ import annotations

from ropewalk.backends.listeners import Listeners
from ropewalk.ports.notifier import Hint, Listener, Notifier, Unsubscribe


class LocalNotifier(Notifier):
    """The notifier of a store that only one process uses."""

    def __init__(self) -> None:
        self._listeners = Listeners()

    def publish(self, hint: Hint) -> None:
        self._listeners.call(hint)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        return self._listeners.add(listener)
