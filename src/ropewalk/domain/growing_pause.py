"""The pauses before something that keeps failing is tried again."""

from __future__ import annotations

import math


class GrowingPause:
    """Pauses between tries of something that fails: each is twice as long as the one before, up to the longest one.

    The pauses start over after things have gone well for `healthy_seconds`. A moment of success is not enough, because
    a connection, for example, may be accepted and cut at once, again and again.
    """

    def __init__(self, first_seconds: float, max_seconds: float, *, healthy_seconds: float = math.inf) -> None:
        self._first_seconds = first_seconds
        self._max_seconds = max_seconds
        self._healthy_seconds = healthy_seconds
        self._next_seconds = first_seconds

    def after(self, healthy_for_seconds: float = 0.0) -> float:
        """Returns the pause after one more failure, before which things had gone well for `healthy_for_seconds`."""
        if healthy_for_seconds >= self._healthy_seconds:
            self.start_over()
        pause = self._next_seconds
        self._next_seconds = min(2 * pause, self._max_seconds)
        return pause

    def start_over(self) -> None:
        self._next_seconds = self._first_seconds
