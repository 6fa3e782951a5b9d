"""Receives the hints of other processes: by a socket, and by looking at the file itself.

Hints are sent as datagrams. Every process that listens has a UNIX socket in a directory beside the file, and a process
that publishes a hint sends it to all of these sockets (notifier.py). A message that cannot be delivered at once is
dropped. If the platform has no UNIX sockets, or none can be made, looking at the file remains.

A look finds what was committed without a hint, because a socket could not be made or reached, or was full. It finds
this a quarter of a second later, and can only tell that something has happened.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import tempfile
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from ropewalk.ports.notifier import Hint, Listener
from ropewalk.ports.runtime import Runtime

ADDRESS_BYTES_MAX: Final = 100
"""The path of a socket may have this length: macOS allows 104 bytes, and Linux 108."""
MESSAGE_BYTES_MAX: Final = 16 * 1024
NAME_CHARS: Final = 24
BIND_TRIES: Final = 5


class HintSocket:
    """The socket of this process, as long as it listens."""

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
            _make_directory(directory)
            try:
                self.socket.bind(str(self.address))
            except FileNotFoundError:
                continue  # The last of the other listeners has just removed the directory.
            return
        raise FileNotFoundError(f"{directory} vanished {BIND_TRIES} times while binding a socket in it")

    def take(self) -> bytes | None:
        """Returns the next message, or None if there is none at the moment."""
        try:
            return self.socket.recv(MESSAGE_BYTES_MAX)
        except OSError:
            return None

    def close(self) -> None:
        with suppress(OSError):
            self.address.unlink()
        with suppress(OSError):
            self.address.parent.rmdir()  # This fails while others listen.
        self.socket.close()

    def leave_to_parent(self) -> None:
        """Closes the socket after a fork but keeps its address, which belongs to the parent."""
        self.socket.close()


def directory_for(path: Path) -> Path:
    """Returns the directory of the sockets for this file: beside the file, or in the temporary directory if the path
    would be too long."""
    beside = path.with_name(path.name + "-wake")
    if len(os.fsencode(beside)) + NAME_CHARS + len("/.sock") <= ADDRESS_BYTES_MAX:
        return beside
    return Path(tempfile.gettempdir()) / f"ropewalk-{blake2b(os.fsencode(path), digest_size=8).hexdigest()}"


def _make_directory(directory: Path) -> None:
    """Makes the directory. If it is in the temporary directory, where everybody may write, it must belong to this
    user."""
    in_shared = directory.parent == Path(tempfile.gettempdir())
    directory.mkdir(exist_ok=True, mode=0o700 if in_shared else 0o777)
    if in_shared and directory.stat().st_uid != os.geteuid():
        raise PermissionError(f"{directory} belongs to another user")


LOOK_SECONDS: Final = 0.25
"""The listening thread looks at the file this often."""
LINGER_LOOKS: Final = 40
"""The thread asks only after so many looks (10 s) whether it is still needed, because listeners come and go, and a
thread for each of them would be expensive."""
MESSAGES_AT_ONCE_MAX: Final = 100

Marks: TypeAlias = tuple[int, int]
"""Two numbers: the first differs after every commit of another connection, the second after a cancellation or pause."""
ReadMarks: TypeAlias = Callable[[], Awaitable[Marks | None]]
"""Such a function reads the marks of the file; it returns None while the store is closed."""

_hints = msgspec.json.Decoder(Hint)
_log = logging.getLogger("ropewalk.sqlite")


class Listening:
    """A thread that calls `on_hint` with the hints of other processes, until `stop` is called or `retire` returns True
    because nobody listens any more. The socket exists from the construction on, so that no later hint is missed."""

    def __init__(
        self, directory: Path, runtime: Runtime, *, marks: ReadMarks, on_hint: Listener, retire: Callable[[], bool]
    ) -> None:
        self._runtime = runtime
        self._marks = marks
        self._on_hint = on_hint
        self._retire = retire
        self._lock = threading.Lock()
        self._stopped = False
        self._begun = False
        self._hint_socket = _hint_socket(directory, runtime.token())
        self.address = None if self._hint_socket is None else self._hint_socket.address
        self.thread = runtime.thread(self._main, name="ropewalk-sqlite-listener")

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if not self._begun and self._hint_socket is not None:
                self._hint_socket.close()  # The thread has not begun and never will.
        self.thread.cancel()

    def leave_to_parent(self) -> None:
        """Closes the socket after a fork. The thread and the address belong to the parent."""
        if self._hint_socket is not None:
            self._hint_socket.leave_to_parent()

    async def _main(self) -> None:
        with self._lock:
            self._begun = not self._stopped
        if not self._begun:
            return
        loop, hint_socket = asyncio.get_running_loop(), self._hint_socket
        if hint_socket is not None:
            loop.add_reader(hint_socket.socket, self._receive, hint_socket)
        try:
            await self._look_until_retired()
        finally:
            if hint_socket is not None:
                loop.remove_reader(hint_socket.socket)
                hint_socket.close()

    def _receive(self, hint_socket: HintSocket) -> None:
        for _ in range(MESSAGES_AT_ONCE_MAX):
            message = hint_socket.take()
            if message is None:
                return
            with suppress(msgspec.DecodeError):
                self._on_hint(_hints.decode(message))

    async def _look_until_retired(self) -> None:
        seen: Marks | None = None
        for turn in count(1):
            marks = await self._look()
            if marks is not None:
                if seen is not None and marks[0] != seen[0]:
                    self._on_hint(Hint(many=True, control=marks[1] != seen[1]))
                seen = marks
            await self._runtime.sleep(LOOK_SECONDS)
            if turn % LINGER_LOOKS == 0 and self._retire():
                return

    async def _look(self) -> Marks | None:
        try:
            return await self._marks()
        except Exception as error:  # Whatever is wrong with the file may pass, and sockets still work.
            _log.debug("could not look for changes: %s", error)
            return None


def _hint_socket(directory: Path, name: str) -> HintSocket | None:
    try:
        return HintSocket(directory, name)
    except (OSError, AttributeError) as error:  # AttributeError: a platform without UNIX sockets
        _log.info("no wake-up socket in %s: %s; looking at the file instead", directory, error)
        return None
