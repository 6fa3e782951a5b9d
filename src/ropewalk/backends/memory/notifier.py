"""Wake-ups inside one process: whoever subscribed is called at once, on the publisher's thread."""

from __future__ import annotations

import threading
from contextlib import suppress

from ropewalk.ports.notifier import Hint, Listener, Notifier, Unsubscribe


class LocalNotifier(Notifier):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[int, Listener] = {}
        self._subscribed = 0

    def publish(self, hint: Hint) -> None:
        with self._lock:
            listeners = tuple(self._listeners.values())
        for listener in listeners:
            # A hint is worth nothing to its publisher: a broken listener must not reach it or its neighbours.
            with suppress(Exception):
                listener(hint)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        with self._lock:
            self._subscribed += 1
            number = self._subscribed
            self._listeners[number] = listener

        def unsubscribe() -> None:
            with self._lock:
                self._listeners.pop(number, None)

        return unsubscribe
