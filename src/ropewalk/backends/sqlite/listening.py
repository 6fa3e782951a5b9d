"""Hearing what other processes say: by socket, and by looking at the file itself.

The look is for whatever was committed and not announced, because a socket could not be made, reached or filled. It sees
it a quarter of a second later, and says no more than that something happened.

Datagram sockets beside the file: whoever listens has one in the directory, whoever has news writes to all of them.

Nothing here blocks, waits or fails: a letter that cannot be delivered at once is dropped. Where there are no UNIX
sockets, or none may be made, nobody listens and the look at the file (listening.py) is all there is.
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


def _make(directory: Path) -> None:
    """Where everybody may write, only a directory of our own will do."""
    in_shared = directory.parent == Path(tempfile.gettempdir())
    directory.mkdir(exist_ok=True, mode=0o700 if in_shared else 0o777)
    if in_shared and directory.stat().st_uid != os.geteuid():
        raise PermissionError(f"{directory} belongs to another user")


LOOK_SECONDS: Final = 0.25
LINGER_LOOKS: Final = 40
"""after so many it asks whether anybody still listens (10 s): waits come and go, a thread each would be dear"""
LETTERS_AT_ONCE_MAX: Final = 100

Marks: TypeAlias = tuple[int, int]
"""(differs after any other connection's commit, differs after a cancellation or pause)"""
LookAtMarks: TypeAlias = Callable[[], Awaitable[Marks | None]]

_hints = msgspec.json.Decoder(Hint)
_log = logging.getLogger("ropewalk.sqlite")


class Listening:
    """From its construction until `stop`, or until `retire` says that nobody has listened for a while.

    The socket is there at once: nothing said from then on is missed.
    """

    def __init__(
        self, directory: Path, runtime: Runtime, *, marks: LookAtMarks, tell: Listener, retire: Callable[[], bool]
    ) -> None:
        self._runtime = runtime
        self._marks = marks
        self._tell = tell
        self._retire = retire
        self._lock = threading.Lock()
        self._stopped = False
        self._begun = False
        self._mailbox = _mailbox(directory, runtime.token())
        self.address = None if self._mailbox is None else self._mailbox.address
        self.thread = runtime.thread(self._main, name="ropewalk-sqlite-listener")

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if not self._begun and self._mailbox is not None:
                self._mailbox.close()  # the thread never will
        self.thread.cancel()

    def leave_to_parent(self) -> None:
        """After a fork: thread and address are the parent's."""
        if self._mailbox is not None:
            self._mailbox.leave_to_parent()

    async def _main(self) -> None:
        with self._lock:
            self._begun = not self._stopped
        if not self._begun:
            return
        loop, mailbox = asyncio.get_running_loop(), self._mailbox
        if mailbox is not None:
            loop.add_reader(mailbox.socket, self._receive, mailbox)
        try:
            await self._look_until_retired()
        finally:
            if mailbox is not None:
                loop.remove_reader(mailbox.socket)
                mailbox.close()

    def _receive(self, mailbox: Mailbox) -> None:
        for _ in range(LETTERS_AT_ONCE_MAX):
            letter = mailbox.take()
            if letter is None:
                return
            with suppress(msgspec.DecodeError):
                self._tell(_hints.decode(letter))

    async def _look_until_retired(self) -> None:
        seen: Marks | None = None
        for turn in count(1):
            marks = await self._look()
            if marks is not None:
                if seen is not None and marks[0] != seen[0]:
                    self._tell(Hint(many=True, control=marks[1] != seen[1]))
                seen = marks
            await self._runtime.sleep(LOOK_SECONDS)
            if turn % LINGER_LOOKS == 0 and self._retire():
                return

    async def _look(self) -> Marks | None:
        try:
            return await self._marks()
        except Exception as error:  # whatever is wrong with the file, sockets still work and it may pass
            _log.debug("could not look for changes: %s", error)
            return None


def _mailbox(directory: Path, name: str) -> Mailbox | None:
    try:
        return Mailbox(directory, name)
    except (OSError, AttributeError) as error:  # AttributeError: a platform without UNIX sockets
        _log.info("no wake-up socket in %s: %s; looking at the file instead", directory, error)
        return None
