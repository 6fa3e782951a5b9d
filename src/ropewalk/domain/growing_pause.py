"""The pauses before something that keeps failing is tried again."""

from __future__ import annotations

import math


class GrowingPause:
    """Each pause is twice the last, up to the longest one.

    The pauses start over after something has gone well for `healthy_seconds`. That it went well for a moment says
    nothing: a connection may be accepted and cut at once, again and again.
    """

    def __init__(self, first_seconds: float, max_seconds: float, *, healthy_seconds: float = math.inf) -> None:
        self._first_seconds = first_seconds
        self._max_seconds = max_seconds
        self._healthy_seconds = healthy_seconds
        self._next_seconds = first_seconds

    def after(self, healthy_for_seconds: float = 0.0) -> float:
        """The pause after one more failure, of something that has gone well for so long."""
        if healthy_for_seconds >= self._healthy_seconds:
            self.start_over()
        pause = self._next_seconds
        self._next_seconds = min(2 * pause, self._max_seconds)
        return pause

    def start_over(self) -> None:
        self._next_seconds = self._first_seconds
