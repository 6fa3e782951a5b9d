"""Hearing what other processes say: by socket, and by looking at the file itself.

The look is for whatever was committed and not announced, because a socket could not be made, reached or filled. It sees
it a quarter of a second later, and says no more than that something happened.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from ropewalk.backends.sqlite.mailbox import Mailbox
from ropewalk.ports.notifier import Hint, Listener
from ropewalk.ports.runtime import Runtime

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
        self.thread = runtime.thread(self._main, name="ropewalk-sqlite-listener")

    @property
    def address(self) -> Path | None:
        return None if self._mailbox is None else self._mailbox.address

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
