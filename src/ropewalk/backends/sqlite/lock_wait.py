"""The wait for another process that holds the file locked: short steps, and none after a limit of time is over.

It takes real time, whatever the clock of the runtime: the process that holds the lock does not share that clock. And
it measures that time: on a busy machine a step takes many times as long as it was meant to.
"""

from __future__ import annotations

import threading
import time
from typing import Final

LOCKED_SECONDS_MAX: Final = 10.0
"""How long we wait for another process that holds the file locked."""
_NEVER_SET: Final = threading.Event()


class LockWait:
    """Begins when it is made."""

    def __init__(self) -> None:
        self._ends_at = _real_seconds() + LOCKED_SECONDS_MAX

    @property
    def over(self) -> bool:
        return _real_seconds() >= self._ends_at

    def step(self, seconds: float) -> None:
        _NEVER_SET.wait(seconds)


def _real_seconds() -> float:
    return time.monotonic()  # noqa: TID251  the runtime's clock may be a fake one, and this wait is for another process
