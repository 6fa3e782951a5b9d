"""Ids of jobs, given when a job is built: so the one place of definitions that asks for time and chance."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from threading import Lock

from ropewalk.domain.ids import counted, random_part, time_part

ENTROPY_BATCH = 256
"""ids per read of the system's randomness: one read costs as much as an id"""


class MonotonicIds:
    """UUIDv7 texts that only go up, within this process, from any thread; a forked child draws its own randomness."""

    _lock: Lock
    _random_parts: Iterator[str]
    _pid: int
    _ms: int
    _counter: int
    _time_part: str

    def __init__(self) -> None:
        self._begin()

    def __call__(self) -> str:
        if self._pid != os.getpid():
            self._begin()
        with self._lock:
            now_ms = time.time_ns() // 1_000_000
            if now_ms > self._ms:
                self._go_to(now_ms)
            elif self._counter < 0xFFF:
                self._counter += 1
            else:  # more than 4096 ids in this ms, or the clock went back: run ahead of it
                self._go_to(self._ms + 1)
            part = next(self._random_parts, None)
            if part is None:
                self._random_parts = _draw()
                part = next(self._random_parts)
            return counted(self._time_part, self._counter, part)

    def _go_to(self, ms: int) -> None:
        self._ms, self._counter, self._time_part = ms, 0, time_part(ms)

    def _begin(self) -> None:
        # A new lock too: the fork may have happened while another thread held the old one.
        self._lock = Lock()
        self._random_parts = _draw()
        self._go_to(0)
        self._pid = os.getpid()


def new_id() -> str:
    """The id of the next job."""
    return _generate()


def set_id_generator(generate: Callable[[], str] | None) -> None:
    """Make ids with `generate` from now on, in this process; None goes back to UUIDv7."""
    global _generate  # noqa: PLW0603 # jobs are built by module-level calls: there is no object to hold it
    _generate = _default if generate is None else generate


def _draw() -> Iterator[str]:
    return iter([random_part(each) for each in memoryview(os.urandom(8 * ENTROPY_BATCH)).cast("Q")])


_default = MonotonicIds()
_generate: Callable[[], str] = _default
