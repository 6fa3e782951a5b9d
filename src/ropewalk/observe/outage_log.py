"""What the log says while the store is away."""

from __future__ import annotations

import logging
from typing import Final

from ropewalk.errors import StoreUnavailable

logger = logging.getLogger("ropewalk")

LINE_EVERY_SECONDS: Final = 30.0


class OutageLog:
    """The log lines about a store that is away: one at the beginning, one every 30 seconds, and one at the end.

    Every loop fails again and again meanwhile for the same reason, and a traceback would add nothing.
    """

    def __init__(self) -> None:
        self._logged_at: float | None = None
        self._since_then = 0
        """The number of errors since the last line, which were not logged."""
        self._open = False

    def log(self, error: StoreUnavailable, phase: str, now: float) -> None:
        """Logs or counts an error that occurred because the store is away."""
        if self._logged_at is not None and now - self._logged_at < LINE_EVERY_SECONDS:
            self._since_then += 1
            return
        more = f" ({self._since_then} more such errors since the last line)" if self._since_then else ""
        logger.warning("the store is away, %s tries again: %s%s", phase, str(error) or type(error).__name__, more)
        self._logged_at, self._since_then, self._open = now, 0, True

    def log_end(self, seconds: float) -> None:
        """Logs that the store is back, if its absence was logged."""
        if self._open:
            logger.warning("the store answers again, %.1f s after the first call that failed", seconds)
        self._open = False
