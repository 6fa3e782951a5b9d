"""Datagram sockets beside the file: whoever listens has one in the directory, whoever has news writes to all of them.

Nothing here blocks, waits or fails: a letter that cannot be delivered at once is dropped. Where there are no UNIX
sockets, or none may be made, nobody listens and the look at the file (listening.py) is all there is.
"""

from __future__ import annotations

import os
import socket
import tempfile
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

ADDRESS_BYTES_MAX: Final = 100
"""a socket's path: 104 are allowed on macOS, 108 on Linux"""
LETTER_BYTES_MAX: Final = 16 * 1024
NAME_CHARS: Final = 24
BIND_TRIES: Final = 5


class Mailbox:
    """Our own socket, for as long as we listen."""

    def __init__(self, directory: Path, name: str) -> None:
        self.address = directory / f"{name[:NAME_CHARS]}.sock"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(0)
        try:
            self._bind(directory)
        except OSError:
            self.socket.close()
            raise

    def _bind(self, directory: Path) -> None:
        for _ in range(BIND_TRIES):
            _make(directory)
            try:
                self.socket.bind(str(self.address))
            except FileNotFoundError:
                continue  # the last of the others has just left and taken the directory away
            return
        raise FileNotFoundError(f"{directory} vanished {BIND_TRIES} times while binding a socket in it")

    def take(self) -> bytes | None:
        """The next letter, if there is one."""
        try:
            return self.socket.recv(LETTER_BYTES_MAX)
        except OSError:
            return None

    def close(self) -> None:
        with suppress(OSError):
            self.address.unlink()
        with suppress(OSError):
            self.address.parent.rmdir()  # refused while others listen
        self.socket.close()

    def leave_to_parent(self) -> None:
        """After a fork: the address is the parent's."""
        self.socket.close()


def directory_for(path: Path) -> Path:
    """Where the sockets of this file are: beside it, or in the temporary directory when the path is too long."""
    beside = path.with_name(path.name + "-wake")
    if len(os.fsencode(beside)) + NAME_CHARS + len("/.sock") <= ADDRESS_BYTES_MAX:
        return beside
    return Path(tempfile.gettempdir()) / f"ropewalk-{blake2b(os.fsencode(path), digest_size=8).hexdigest()}"


def send(directory: Path, letter: bytes, *, but_not_to: Path | None) -> None:
    """To everybody who listens; removes the addresses of those who died."""
    try:
        addresses = [directory / name for name in os.listdir(directory)]  # noqa: PTH208  half the cost of iterdir
    except OSError:
        return
    others = [address for address in addresses if address != but_not_to]
    if not others or not hasattr(socket, "AF_UNIX"):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(0)
        for address in others:
            _send(sender, letter, address)


def _send(sender: socket.socket, letter: bytes, address: Path) -> None:
    try:
        sender.sendto(letter, str(address))
    except ConnectionRefusedError:
        with suppress(OSError):
            address.unlink()
    except OSError:
        return  # full, gone or not ours: it is only a hint


def _make(directory: Path) -> None:
    """Where everybody may write, only a directory of our own will do."""
    in_shared = directory.parent == Path(tempfile.gettempdir())
    directory.mkdir(exist_ok=True, mode=0o700 if in_shared else 0o777)
    if in_shared and directory.stat().st_uid != os.geteuid():
        raise PermissionError(f"{directory} belongs to another user")
