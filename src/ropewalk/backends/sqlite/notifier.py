"""The notifier of a SQLite file: it sends hints to the processes that share the file.

Listeners in this process are called directly, other processes get the hints by socket. As long as somebody listens
here, a thread receives the hints of other processes (listening.py).
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

from ropewalk.backends.listeners import Listeners, encode_within
from ropewalk.backends.sql.forking import follow_forks
from ropewalk.backends.sqlite.listening import MESSAGE_BYTES_MAX, Listening, ReadMarks, directory_for
from ropewalk.ports.notifier import Hint, Listener, Notifier, Unsubscribe
from ropewalk.ports.runtime import Runtime


class FileNotifier(Notifier):
    """The notifier of the store of one file. `marks` reads the marks of the file (listening.py)."""

    def __init__(self, path: Path, runtime: Runtime, marks: ReadMarks) -> None:
        self._directory = directory_for(path)
        self._runtime = runtime
        self._marks = marks
        self._listeners = Listeners()
        self._begin_anew()
        follow_forks(self)

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        """This lock guards `_listening`."""
        self._listening: Listening | None = None

    def publish(self, hint: Hint) -> None:
        self._listeners.call(hint)
        listening = self._listening
        send(self._directory, encode_hint(hint), but_not_to=None if listening is None else listening.address)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        with self._lock:
            unsubscribe = self._listeners.add(listener)
            self._start()
        return unsubscribe

    async def pause(self) -> None:
        """Stops listening but keeps the listeners, because the store closes. Afterwards nobody looks at the file."""
        with self._lock:
            listening, self._listening = self._listening, None
        if listening is not None:
            listening.stop()
            await listening.thread.finished()

    def resume(self) -> None:
        """Listens again if there are listeners, because the store has opened."""
        with self._lock:
            if self._listeners:
                self._start()

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        if self._listening is not None:
            self._listening.leave_to_parent()
        self._listeners.after_fork_in_child()
        self._begin_anew()

    def _start(self) -> None:
        if self._listening is None:
            self._listening = Listening(
                self._directory, self._runtime, marks=self._marks, on_hint=self._listeners.call, retire=self._retire
            )

    def _retire(self) -> bool:
        """Whether the listening thread may end, because no listener is left."""
        with self._lock:
            if self._listeners:
                return False
            self._listening = None
            return True


def encode_hint(hint: Hint) -> bytes:
    """Encodes a hint as one datagram."""
    return encode_within(hint, MESSAGE_BYTES_MAX, msgspec.json.encode)


def send(directory: Path, message: bytes, *, but_not_to: Path | None) -> None:
    """Sends a message to every process that listens, and removes the addresses of those that died."""
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
            _send(sender, message, address)


def _send(sender: socket.socket, message: bytes, address: Path) -> None:
    try:
        sender.sendto(message, str(address))
    except ConnectionRefusedError:
        with suppress(OSError):
            address.unlink()
    except OSError:
        return  # The socket is full, gone or of another user; the message is only a hint.
