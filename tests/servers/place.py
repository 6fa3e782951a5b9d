"""Where homes are put: within reach of the server's account, and short (a socket's path has about a hundred bytes)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from tests.servers.account import NOBODY, can_reach

EVERYBODYS: Final = Path("/var/tmp")
SHARED_MEMORY: Final = Path("/dev/shm")
MEMORY_BYTES_MIN: Final = 2**30
"""a container often has 64 MiB there, and a server whose log finds no room stops"""


def on_disk() -> Path:
    named = Path(tempfile.gettempdir())
    for place in (named, EVERYBODYS):
        if can_reach(place):
            return place
    raise PermissionError(
        f"{named} is closed to user {NOBODY}, whom servers run as when root starts them: "
        "set TMPDIR to a directory open to everybody"
    )


def in_memory() -> Path | None:
    """For what need not survive the machine: a database is 300 files, made there in 25 ms, on a disk in 100 to 400."""
    if not SHARED_MEMORY.is_dir() or not can_reach(SHARED_MEMORY):
        return None
    return SHARED_MEMORY if shutil.disk_usage(SHARED_MEMORY).free >= MEMORY_BYTES_MIN else None
