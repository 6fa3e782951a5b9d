"""Wake-ups between the processes that share a file.

Hints go to listeners here directly and to other processes by socket (mailbox.py). As long as somebody listens, a
thread receives theirs and also watches the file itself: when another connection committed something that nobody
announced, it says so a quarter of a second later.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from msgspec import structs

from ropewalk.backends.sqlite.forking import follow_forks
from ropewalk.backends.sqlite.mailbox import LETTER_BYTES_MAX, Mailbox, directory_for, send
from ropewalk.errors import RopewalkError
from ropewalk.ports.notifier import Hint, Listener, Notifier, Unsubscribe
from ropewalk.ports.runtime import Runtime, Task

WATCH_SECONDS: Final = 0.25
LETTERS_AT_ONCE_MAX: Final = 100

Marks: TypeAlias = tuple[int, int]
"""(changes whenever another connection commits, changes with every cancellation and pause)"""

_hints = msgspec.json.Decoder(Hint)
_log = logging.getLogger("ropewalk.sqlite")


class FileNotifier(Notifier):
    """`marks` reads the file's marks, or answers None while the store is closed."""

    def __init__(self, path: Path, runtime: Runtime, marks: Callable[[], Awaitable[Marks | None]]) -> None:
        self._directory = directory_for(path)
        self._runtime = runtime
        self._marks = marks
        self._begin_anew()
        follow_forks(self)

    def publish(self, hint: Hint) -> None:
        self._tell(hint)
        mailbox = self._mailbox
        send(self._directory, fitting(hint), but_not_to=None if mailbox is None else mailbox.address)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        with self._lock:
            self._subscribed += 1
            number = self._subscribed
            self._listeners[number] = listener
            if self._thread is None:
                self._start()

        def unsubscribe() -> None:
            with self._lock:
                self._listeners.pop(number, None)
                if not self._listeners:
                    self._stop()

        return unsubscribe

    def pause(self) -> None:
        """The store closes: stop listening, keep the listeners."""
        with self._lock:
            self._stop()

    def resume(self) -> None:
        """The store opened: listen again, if anybody is there to be told."""
        with self._lock:
            if self._listeners and self._thread is None:
                self._start()

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        if self._mailbox is not None:
            self._mailbox.leave_to_parent()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[int, Listener] = {}
        self._subscribed = 0
        self._thread: Task | None = None
        self._mailbox: Mailbox | None = None

    def _start(self) -> None:
        """Bound before subscribe returns: nothing published from then on is missed."""
        try:
            self._mailbox = mailbox = Mailbox(self._directory, self._runtime.token())
        except (OSError, AttributeError) as error:  # AttributeError: a platform without UNIX sockets
            self._mailbox = mailbox = None
            _log.info("no wake-up socket in %s: %s; watching the file instead", self._directory, error)
        self._thread = self._runtime.thread(lambda: self._listen(mailbox), name="ropewalk-sqlite-listener")

    def _stop(self) -> None:
        thread, self._thread = self._thread, None
        self._mailbox = None
        if thread is not None:
            thread.cancel()

    async def _listen(self, mailbox: Mailbox | None) -> None:
        loop = asyncio.get_running_loop()
        if mailbox is not None:
            loop.add_reader(mailbox.socket, self._receive, mailbox)
        try:
            await self._watch()
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

    async def _watch(self) -> None:
        seen: Marks | None = None
        while True:
            marks = await self._look()
            if marks is not None:
                if seen is not None and marks[0] != seen[0]:
                    self._tell(Hint(many=True, control=marks[1] != seen[1]))
                seen = marks
            await self._runtime.sleep(WATCH_SECONDS)

    async def _look(self) -> Marks | None:
        try:
            return await self._marks()
        except RopewalkError as error:
            _log.debug("could not look for changes: %s", error)
            return None

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
