"""Wake-ups through NOTIFY, on a connection of their own that goes straight to the server.

Listeners in this process are told directly, others by the server. Hints that come while one is under way are put
together. Nothing here is needed: without it, or behind a pooler that swallows it, workers find their work by looking.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from typing import Final

import msgspec
import psycopg
from msgspec import structs

from ropewalk.backends.postgres.address import Address
from ropewalk.backends.postgres.opening import connect
from ropewalk.backends.postgres.tx import Connection
from ropewalk.backends.sql.forking import follow_forks
from ropewalk.domain.growing_pause import GrowingPause
from ropewalk.ports.notifier import Hint, Listener, Notifier, Unsubscribe
from ropewalk.ports.runtime import Runtime, Task

PAYLOAD_BYTES_MAX: Final = 7900
PAUSE_SECONDS_FIRST: Final = 0.1
PAUSE_SECONDS_MAX: Final = 10.0
HEALTHY_SECONDS: Final = 10.0
"""Time for which a connection must have listened before the pauses start over. Some are accepted and cut at once, by a
proxy or a server that is about to stop."""

_log = logging.getLogger("ropewalk.postgres")


class Letter(msgspec.Struct, frozen=True):
    sender: str
    """so that whoever was told directly is not told again"""
    hint: Hint


_letters = msgspec.json.Decoder(Letter)


class PostgresNotifier(Notifier):
    def __init__(self, address: Address, runtime: Runtime) -> None:
        self._address = address
        self._runtime = runtime
        self._channel = channel_of(address.schema)
        self._parents_db: Connection | None = None
        self._begin_anew()
        follow_forks(self)

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        self._name = self._runtime.token()
        self._listeners: dict[int, Listener] = {}
        self._subscribed = 0
        self._waiting: Hint | None = None
        self._thread: Task | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awake: asyncio.Event | None = None
        self._newcomers: list[asyncio.Future[None]] = []
        """those who wait until somebody listens, or could not"""
        self._stopped = False
        self._db: Connection | None = None
        self._watched: int | None = None
        """the descriptor of the connection, which cannot tell it any more once it is lost"""
        self._listening_since = 0.0
        """When the connection that is watched began to listen, by the monotonic clock."""

    def publish(self, hint: Hint) -> None:
        self._tell(hint)
        with self._lock:
            self._add(hint)
            self._wake()

    def subscribe(self, listener: Listener) -> Unsubscribe:
        with self._lock:
            self._subscribed += 1
            number = self._subscribed
            self._listeners[number] = listener
            self._wake()

        def unsubscribe() -> None:
            with self._lock:
                self._listeners.pop(number, None)

        return unsubscribe

    async def pause(self) -> None:
        """The store closes: disconnect, keep the listeners."""
        with self._lock:
            thread, self._stopped = self._thread, True
            self._wake()
        if thread is not None:
            await thread.finished()

    async def resume(self) -> None:
        """The store opened: listen. Nothing said from then on is missed, unless the server cannot be reached."""
        if not self._address.notify:
            return
        listening = asyncio.get_running_loop().create_future()
        with self._lock:
            self._stopped = False
            self._newcomers.append(listening)
            self._wake()
        await listening

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        self._parents_db = self._db  # neither used nor closed here
        self._begin_anew()

    def _wake(self) -> None:
        """Under the lock."""
        if not self._address.notify:
            return
        if self._loop is not None and not self._loop.is_closed() and self._awake is not None:
            self._loop.call_soon_threadsafe(self._awake.set)
        elif self._thread is None and not self._stopped:
            self._thread = self._runtime.thread(self._main, name="ropewalk-postgres-notifier")

    async def _main(self) -> None:
        awake = asyncio.Event()
        with self._lock:
            self._loop, self._awake = asyncio.get_running_loop(), awake
        try:
            await self._go_on(awake)
        finally:
            self._disconnect()
            with self._lock:
                self._thread = self._loop = self._awake = None
            self._welcome()

    async def _go_on(self, awake: asyncio.Event) -> None:
        pause = GrowingPause(PAUSE_SECONDS_FIRST, PAUSE_SECONDS_MAX, healthy_seconds=HEALTHY_SECONDS)
        while not self._stopped:
            awake.clear()
            try:
                self._send(self._connected(awake))
                self._welcome()
                await awake.wait()
            except psycopg.Error as error:
                _log.debug("no wake-ups through %s: %s", self._address.shown, error)
                listened_seconds = 0.0 if self._watched is None else self._runtime.monotonic() - self._listening_since
                self._disconnect()
                self._welcome()
                await self._rest(awake, pause.after(listened_seconds))

    async def _rest(self, awake: asyncio.Event, seconds: float) -> None:
        """Until the time is over or the store closes, however much there is to tell."""
        rested = asyncio.Event()

        def go_on() -> None:
            rested.set()
            awake.set()

        timer = self._runtime.after(seconds, go_on)
        while not rested.is_set() and not self._stopped:
            awake.clear()
            await awake.wait()
        timer.cancel()

    def _connected(self, awake: asyncio.Event) -> Connection:
        if self._db is None:
            db = self._db = connect(self._address)
            db.execute(f"LISTEN {self._channel}".encode())
            db.add_notify_handler(lambda notify: self._receive(notify.payload))
            self._watched, self._listening_since = db.fileno(), self._runtime.monotonic()
            asyncio.get_running_loop().add_reader(self._watched, awake.set)
            self._tell(Hint(many=True, control=True))  # whatever was said before nobody heard here
        return self._db

    def _send(self, db: Connection) -> None:
        """Also takes what came in: a statement's answer brings it along."""
        with self._lock:
            hint, self._waiting = self._waiting, None
        if hint is None:
            db.pgconn.consume_input()
            while (notify := db.pgconn.notifies()) is not None:
                self._receive(notify.extra.decode())
            return
        try:
            db.execute(b"SELECT pg_notify(%s, %s)", (self._channel, fitting(self._name, hint)))
        except psycopg.Error:
            with self._lock:
                self._add(hint)  # for the next connection
            raise

    def _add(self, hint: Hint) -> None:
        """Under the lock."""
        self._waiting = hint if self._waiting is None else together(self._waiting, hint)

    def _receive(self, payload: str) -> None:
        with suppress(msgspec.DecodeError):
            letter = _letters.decode(payload)
            if letter.sender != self._name:
                self._tell(letter.hint)

    def _welcome(self) -> None:
        with self._lock:
            newcomers, self._newcomers = self._newcomers, []
        for newcomer in newcomers:
            with suppress(RuntimeError):  # its loop is closed: nobody waits any more
                newcomer.get_loop().call_soon_threadsafe(_settle, newcomer)

    def _disconnect(self) -> None:
        db, self._db = self._db, None
        watched, self._watched = self._watched, None
        if watched is not None:
            # Also of a connection the driver closed already: the next one may get the same number, and would be taken
            # for one that is watched.
            asyncio.get_running_loop().remove_reader(watched)
        if db is not None:
            db.close()

    def _tell(self, hint: Hint) -> None:
        with self._lock:
            listeners = tuple(self._listeners.values())
        for listener in listeners:
            # A hint is worth nothing to its publisher: a broken listener must not reach it or its neighbours.
            with suppress(Exception):
                listener(hint)


def _settle(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def together(one: Hint, other: Hint) -> Hint:
    return Hint(
        ready=tuple(dict.fromkeys(one.ready + other.ready)),
        finished=tuple(dict.fromkeys(one.finished + other.finished)),
        many=one.many or other.many,
        control=one.control or other.control,
    )


def channel_of(schema: str) -> str:
    return f"ropewalk_{blake2b(schema.encode(), digest_size=8).hexdigest()}"


def letters(schema: str, queues: Iterable[str]) -> list[tuple[str, str]]:
    """What a user's transaction says about new work: (channel, letter), from nobody, so that everybody hears it."""
    return [(channel_of(schema), fitting("", Hint(ready=(queue,)))) for queue in queues]


def fitting(sender: str, hint: Hint) -> str:
    """The hint as a letter that fits: of too many ids a part is left out, and `many` says so."""
    letter = msgspec.json.encode(Letter(sender, hint))
    while len(letter) > PAYLOAD_BYTES_MAX and hint.finished:
        hint = structs.replace(hint, finished=hint.finished[: len(hint.finished) // 2], many=True)
        letter = msgspec.json.encode(Letter(sender, hint))
    if len(letter) > PAYLOAD_BYTES_MAX:
        letter = msgspec.json.encode(Letter(sender, Hint(many=True, control=hint.control)))
    return letter.decode()
