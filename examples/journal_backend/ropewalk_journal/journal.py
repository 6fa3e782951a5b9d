"""The journal file: entries with their lengths and checksums, which are on disk before a change is acknowledged."""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ropewalk import StoreRefused, StoreUnavailable

HEAD: Final = 8
"""Bytes before an entry: its length and its checksum."""


class Journal:
    """A journal is open in one process; it raises StoreRefused if another process has it open, or if it is damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise StoreUnavailable(
                f"{path}: {error.strerror}; see that its directory exists and can be written"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._file)
            raise StoreRefused(f"{path} is open in another process: a journal serves one at a time") from error
        directory = os.open(path.parent, os.O_RDONLY)
        os.fsync(directory)  # a new file survives power loss only if its directory is synced
        os.close(directory)

    def entries(self) -> Iterator[bytes]:
        """Yield all entries; an incomplete entry at the end was never acknowledged, and is cut off."""
        data, at = self._path.read_bytes(), 0
        while at < len(data):
            length = int.from_bytes(data[at : at + 4], "big")
            entry = data[at + HEAD : at + HEAD + length]
            if len(entry) < length or zlib.crc32(entry) != int.from_bytes(data[at + 4 : at + HEAD], "big"):
                if at + HEAD + length < len(data):
                    raise StoreRefused(f"{self._path} is damaged at byte {at}: restore it from a backup")
                os.ftruncate(self._file, at)
                return
            yield entry
            at += HEAD + length

    def append(self, entry: bytes) -> None:
        """Write an entry, which is on disk when this returns; after an OSError it is unknown whether it is."""
        head = len(entry).to_bytes(4, "big") + zlib.crc32(entry).to_bytes(4, "big")
        whole = memoryview(head + entry)
        while whole:
            whole = whole[os.write(self._file, whole) :]
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file, so that another process can open it."""
        os.close(self._file)
