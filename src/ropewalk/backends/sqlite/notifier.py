"""Wake-ups between the processes that share a file.

Hints go to listeners here directly and to other processes by socket. As long as somebody listens here, a thread hears
what the others say (listening.py).
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import structs

from ropewalk.backends.sql.forking import follow_forks
from ropewalk.backends.sqlite.listening import LETTER_BYTES_MAX, Listening, LookAtMarks, directory_for
from ropewalk.ports.notifier import Hint, Listener, Notifier, Unsubscribe
from ropewalk.ports.runtime import Runtime


class FileNotifier(Notifier):
    """`marks` reads the file's marks, or answers None while the store is closed."""

    def __init__(self, path: Path, runtime: Runtime, marks: LookAtMarks) -> None:
        self._directory = directory_for(path)
        self._runtime = runtime
        self._marks = marks
        self._begin_anew()
        follow_forks(self)

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[int, Listener] = {}
        self._subscribed = 0
        self._listening: Listening | None = None

    def publish(self, hint: Hint) -> None:
        self._tell(hint)
        listening = self._listening
        send(self._directory, fitting(hint), but_not_to=None if listening is None else listening.address)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        with self._lock:
            self._subscribed += 1
            number = self._subscribed
            self._listeners[number] = listener
            self._start()

        def unsubscribe() -> None:
            with self._lock:
                self._listeners.pop(number, None)  # the thread lingers: the next one may come in a moment

        return unsubscribe

    async def pause(self) -> None:
        """The store closes: stop listening, keep the listeners. Nobody looks at the file any more afterwards."""
        with self._lock:
            listening, self._listening = self._listening, None
        if listening is not None:
            listening.stop()
            await listening.thread.finished()

    def resume(self) -> None:
        """The store opened: listen again, if anybody is there to be told."""
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
        self._begin_anew()

    def _start(self) -> None:
        if self._listening is None:
            self._listening = Listening(
                self._directory, self._runtime, marks=self._marks, tell=self._tell, retire=self._retire
            )

    def _retire(self) -> bool:
        """Whether the listening thread may end, because there is nobody left to tell."""
        with self._lock:
            if self._listeners:
                return False
            self._listening = None
            return True

    def _tell(self, hint: Hint) -> None:
        with self._lock:
            listeners = tuple(self._listeners.values())
        for listener in listeners:
            # A hint is worth nothing to its publisher: a broken listener must not reach it or its neighbours.
            with suppress(Exception):
                listener(hint)


def fitting(hint: Hint) -> bytes:
    """The hint as a letter that fits: of too many ids a part is left out, and `many` says so."""
    letter = msgspec.json.encode(hint)
    while len(letter) > LETTER_BYTES_MAX and hint.finished:
        hint = structs.replace(hint, finished=hint.finished[: len(hint.finished) // 2], many=True)
        letter = msgspec.json.encode(hint)
    if len(letter) > LETTER_BYTES_MAX:
        letter = msgspec.json.encode(Hint(many=True, control=hint.control))
    return letter


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
