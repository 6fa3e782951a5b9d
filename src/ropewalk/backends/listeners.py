"""The listeners of one process, and hints that fit into a message. All notifiers share them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from msgspec import structs

from ropewalk.ports.notifier import Hint, Listener, Unsubscribe


class Listeners:
    """The listeners that subscribed to the hints of one store in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_number: dict[int, Listener] = {}
        self._subscribed = 0

    def __bool__(self) -> bool:
        """Whether there is any listener."""
        return bool(self._by_number)

    def add(self, listener: Listener) -> Unsubscribe:
        """Adds a listener, and returns the function that removes it."""
        with self._lock:
            self._subscribed += 1
            number = self._subscribed
            self._by_number[number] = listener

        def unsubscribe() -> None:
            with self._lock:
                self._by_number.pop(number, None)

        return unsubscribe

    def after_fork_in_child(self) -> None:
        """Forgets all listeners, because they belong to the parent. Another thread may have had the lock at the
        fork."""
        self._lock = threading.Lock()
        self._by_number.clear()

    def call(self, hint: Hint) -> None:
        """Calls every listener, on the thread of the caller."""
        with self._lock:
            listeners = tuple(self._by_number.values())
        for listener in listeners:
            # Nothing depends on a hint: the error of a listener must not reach the publisher or the other listeners.
            with suppress(Exception):
                listener(hint)


def encode_within(hint: Hint, bytes_max: int, encode: Callable[[Hint], bytes]) -> bytes:
    """Encodes a hint as a message that is not too long: if it has too many ids, some are left out, and `many` is
    set."""
    message = encode(hint)
    while len(message) > bytes_max and hint.finished:
        hint = structs.replace(hint, finished=hint.finished[: len(hint.finished) // 2], many=True)
        message = encode(hint)
    return message if len(message) <= bytes_max else encode(Hint(many=True, control=hint.control))
