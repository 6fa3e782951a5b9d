"""How long to wait before a worker that died is replaced, and when to stop hoping. Told the time, it reads none."""

from __future__ import annotations

from typing import Final

PAUSE_SECONDS: Final = 1.0
PAUSE_SECONDS_MAX: Final = 30.0
HEALTHY_SECONDS: Final = 60.0
"""who lived that long dies of something new"""
WORKING_SECONDS: Final = 5.0
"""who served that long was able to work"""
HOPELESS_SECONDS: Final = 60.0


class Patience:
    """With one place of the fleet: each pause is twice the last, until somebody holds out there."""

    def __init__(self) -> None:
        self._next_seconds = PAUSE_SECONDS

    def pause_after(self, lived_seconds: float) -> float:
        if lived_seconds >= HEALTHY_SECONDS:
            self._next_seconds = PAUSE_SECONDS
        pause = self._next_seconds
        self._next_seconds = min(2 * pause, PAUSE_SECONDS_MAX)
        return pause


class Hope:
    """With the fleet as a whole: lost when for a minute nobody at all was able to work."""

    def __init__(self, now: float) -> None:
        self._worked_at = now

    def served(self, since: float | None, now: float) -> None:
        """Somebody serves now, or did until now; None has not started yet."""
        if since is not None and now - since >= WORKING_SECONDS:
            self._worked_at = now

    def lost(self, now: float) -> bool:
        return now - self._worked_at >= HOPELESS_SECONDS
