"""The findings about the journal file that `ropewalk doctor` shows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from msgspec import Struct

from ropewalk.ports.store.findings import Finding, note, ok, sized, warn

LARGE_BYTES: Final = 256 * 1024**2
DISK_LOW_BYTES: Final = 256 * 1024**2

WAKE_UPS: Final = ok("wake-ups", "a journal is open in one process only: nobody else has to be woken")
"""The doctor shows this instead of opening the file a second time, which would be refused."""


class FileFacts(Struct, frozen=True, kw_only=True):
    """Facts about the file and its disk."""

    path: str
    file_bytes: int
    disk_free_bytes: int


def facts(path: Path) -> FileFacts:
    """Read the facts about a journal."""
    free = shutil.disk_usage(path.parent).free
    return FileFacts(path=str(path), file_bytes=path.stat().st_size, disk_free_bytes=free)


def findings_of(facts: FileFacts) -> list[Finding]:
    """Return the findings; the one about durability replaces the general one of the doctor."""
    durable = "a change is on disk before it is answered: an acknowledged job survives power loss"
    return [ok("durability", durable), _room(facts)]


def _room(facts: FileFacts) -> Finding:
    file, disk = sized(facts.file_bytes), sized(facts.disk_free_bytes)
    if facts.disk_free_bytes < DISK_LOW_BYTES:
        return warn("journal", f"the disk has {disk} left", "make room: with a full disk no job can be queued or run")
    if facts.file_bytes >= LARGE_BYTES:
        advice = f"when no job waits or runs any more, stop the app and move {facts.path} away: it begins a new one"
        return note("journal", f"the file has grown to {file}, all of which is read when it is opened", advice)
    return ok("journal", f"the file has {file}, and the disk {disk} left")
