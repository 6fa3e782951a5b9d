"""On what was measured. Figures without these facts mean nothing, and with them only the order of things."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.servers.binaries import WHEEL

from ropewalk.backends.sqlite.library import sqlite

_SYNCS: Final = 50


@dataclass(frozen=True, slots=True)
class Machine:
    cores: int
    system: str
    python: str
    sqlite: str
    postgres: str
    file_system: str
    sync_ms: float
    """median of appending 4 KiB and waiting for it to be on disk: what one durable commit costs at least"""

    def __str__(self) -> str:
        return (
            f"{self.cores} cores · {self.system} · Python {self.python} · SQLite {self.sqlite} · "
            f"PostgreSQL {self.postgres} · {self.file_system}, fdatasync {self.sync_ms:.2f} ms"
        )

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def look(directory: Path | None) -> Machine:
    path = directory or Path(tempfile.gettempdir())
    return Machine(
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        sqlite=sqlite.sqlite_version,
        postgres=importlib.metadata.version(WHEEL),
        file_system=_file_system(path),
        sync_ms=_sync_ms(path),
    )


def _sync_ms(path: Path) -> float:
    sync = getattr(os, "fdatasync", os.fsync)
    took: list[float] = []
    with tempfile.TemporaryFile(dir=path, buffering=0) as file:
        for _ in range(_SYNCS):
            file.write(bytes(4096))
            began = time.perf_counter()
            sync(file.fileno())
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


def _file_system(path: Path) -> str:
    """The type of the file system `path` is on, where the system tells."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown file system"
    real = path.resolve()
    fields = [line.split() for line in mounts.read_text().splitlines()]
    over = [(each[1], each[2]) for each in fields if real.is_relative_to(each[1])]
    return max(over, key=lambda mount: len(mount[0]))[1]
