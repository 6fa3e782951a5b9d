"""Where handlers leave their mark: one memory-mapped file shared by every process of a run.

A handler stamps the start of job `number` and counts itself under its worker's index: two stores to memory, the
same price for everything measured. It knows nothing of queues.
"""

from __future__ import annotations

import mmap
import time
from pathlib import Path
from typing import Final

WORKERS_MAX: Final = 8
_CELL: Final = 8


class Board:
    def __init__(self, path: Path, *, worker: int = 0) -> None:
        self.path = path
        self._worker = worker
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._cells = memoryview(self._map).cast("q")

    @classmethod
    def create(cls, path: Path, jobs: int) -> Board:
        path.write_bytes(bytes((WORKERS_MAX + jobs) * _CELL))
        return cls(path)

    def mark(self, number: int) -> None:
        """A handler starts job `number`, now."""
        self._cells[WORKERS_MAX + number] = time.monotonic_ns()
        self._cells[self._worker] += 1

    @property
    def handled(self) -> int:
        """How many handlers started, in all processes."""
        return sum(self._cells[:WORKERS_MAX])

    def started_ns(self, number: int) -> int:
        """When job `number` started by the monotonic clock all processes share; 0 if it did not."""
        return self._cells[WORKERS_MAX + number]

    def never_started(self, numbers: range) -> list[int]:
        return [number for number in numbers if not self.started_ns(number)]

    def close(self) -> None:
        self._cells.release()
        self._map.close()
