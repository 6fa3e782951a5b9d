"""Notices when the wall clock jumped: a laptop that slept, a clock that was stepped.

By the store's clock every lease may then look expired although its holder is alive and well. After a jump a worker
renews everything it holds at once, and takes nothing back from others until they had the time to do the same.
Fences keep all of this safe; the guard keeps it from being wasteful.
"""

from __future__ import annotations

from typing import Final

from ropewalk.domain.time import SECOND
from ropewalk.ports.runtime import Runtime

TOLERANCE_SECONDS: Final = 1.0
HOLD_SECONDS: Final = 3.0
"""several heartbeat ticks and a busy store"""


class ClockGuard:
    """Asked from the worker's loop and from its heartbeat; a race between them only notices a jump twice."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._ahead = self._wall_ahead()
        self._jumped_at: float | None = None

    def look(self) -> bool:
        """True when the clock jumped since the last look."""
        ahead = self._wall_ahead()
        jumped = ahead - self._ahead > TOLERANCE_SECONDS
        self._ahead = ahead
        if jumped:
            self._jumped_at = self._runtime.monotonic()
        return jumped

    @property
    def calm(self) -> bool:
        """Long enough after a jump that every living worker has renewed its leases."""
        self.look()
        return self._jumped_at is None or self._runtime.monotonic() - self._jumped_at > HOLD_SECONDS

    def _wall_ahead(self) -> float:
        return self._runtime.now() / SECOND - self._runtime.monotonic()
