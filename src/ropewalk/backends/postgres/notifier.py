"""The notifier of a PostgreSQL store: it sends hints by NOTIFY, on a connection of its own.

Listeners in this process are called directly, those in other processes by the server. Hints that are published while
one is being sent are merged. Nothing depends on it: with notify=off, or behind a pooler that does not pass
notifications on, workers find their jobs by looking once a second.
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

from ropewalk.backends.listeners import Listeners, encode_within
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
"""A connection must have listened for this long before the pauses start over: a proxy, or a server that is about to
stop, may accept connections and end them at once."""

_log = logging.getLogger("ropewalk.postgres")


class Payload(msgspec.Struct, frozen=True):
    """What a notification carries."""

    sender: str
    """The name of the notifier that sent it, which ignores it because its listeners were called directly."""
    hint: Hint


_payloads = msgspec.json.Decoder(Payload)


class PostgresNotifier(Notifier):
    """Sends and receives hints on one connection, which a thread owns."""

    def __init__(self, address: Address, runtime: Runtime) -> None:
        self._address = address
        self._runtime = runtime
        self._channel = channel_of(address.schema)
        self._db_of_parent: Connection | None = None
        """After a fork, the connection that the parent uses: it is kept here so that the child does not close it."""
        self._listeners = Listeners()
        self._begin_anew()
        follow_forks(self)

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        self._name = self._runtime.token()
        self._waiting: Hint | None = None
        self._thread: Task | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awake: asyncio.Event | None = None
        self._waiting_for_listen: list[asyncio.Future[None]] = []
        """The callers of `resume`, which wait until the thread listens or has failed to."""
        self._stopped = False
        self._db: Connection | None = None
        self._watched: int | None = None
        """The descriptor of the connection's socket. It is remembered because a lost connection does not know it."""
        self._listening_since = 0.0
        """The monotonic time at which this connection began to listen."""

    def publish(self, hint: Hint) -> None:
        self._listeners.call(hint)
        with self._lock:
            self._add(hint)
            self._wake()

    def subscribe(self, listener: Listener) -> Unsubscribe:
        unsubscribe = self._listeners.add(listener)
        with self._lock:
            self._wake()
        return unsubscribe

    async def pause(self) -> None:
        """Disconnects but keeps the listeners, because the store closes."""
        with self._lock:
            thread, self._stopped = self._thread, True
            self._wake()
        if thread is not None:
            await thread.finished()

    async def resume(self) -> None:
        """Listens, because the store has opened. No later hint is missed, unless the server cannot be reached."""
        if not self._address.notify:
            return
        listening = asyncio.get_running_loop().create_future()
        with self._lock:
            self._stopped = False
            self._waiting_for_listen.append(listening)
            self._wake()
        await listening

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        self._db_of_parent = self._db
        self._listeners.after_fork_in_child()
        self._begin_anew()

    def _wake(self) -> None:
        """Wakes the thread, or starts it. The caller has the lock."""
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
            await self._listen_and_send(awake)
        finally:
            self._disconnect()
            with self._lock:
                self._thread = self._loop = self._awake = None
            self._release_waiting()

    async def _listen_and_send(self, awake: asyncio.Event) -> None:
        pause = GrowingPause(PAUSE_SECONDS_FIRST, PAUSE_SECONDS_MAX, healthy_seconds=HEALTHY_SECONDS)
        while not self._stopped:
            awake.clear()
            try:
                self._send(self._connected(awake))
                self._release_waiting()
                await awake.wait()
            except psycopg.Error as error:
                _log.debug("no wake-ups through %s: %s", self._address.shown, error)
                listened_seconds = 0.0 if self._watched is None else self._runtime.monotonic() - self._listening_since
                self._disconnect()
                self._release_waiting()
                await self._pause_after_failure(awake, pause.after(listened_seconds))

    async def _pause_after_failure(self, awake: asyncio.Event, seconds: float) -> None:
        """Waits until the time is over or the store closes, whatever is published meanwhile."""
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
            self._listeners.call(Hint(many=True, control=True))  # Hints that were sent before were missed here.
        return self._db

    def _send(self, db: Connection) -> None:
        """Sends the hint that waits, and receives notifications. If a hint is sent, they come with the answer."""
        with self._lock:
            hint, self._waiting = self._waiting, None
        if hint is None:
            db.pgconn.consume_input()
            while (notify := db.pgconn.notifies()) is not None:
                self._receive(notify.extra.decode())
            return
        try:
            db.execute(b"SELECT pg_notify(%s, %s)", (self._channel, encode_hint(self._name, hint)))
        except psycopg.Error:
            with self._lock:
                self._add(hint)  # The next connection sends it.
            raise

    def _add(self, hint: Hint) -> None:
        """Adds a hint to the one that waits. The caller has the lock."""
        self._waiting = hint if self._waiting is None else merged(self._waiting, hint)

    def _receive(self, text: str) -> None:
        with suppress(msgspec.DecodeError):
            payload = _payloads.decode(text)
            if payload.sender != self._name:
                self._listeners.call(payload.hint)

    def _release_waiting(self) -> None:
        with self._lock:
            newcomers, self._waiting_for_listen = self._waiting_for_listen, []
        for newcomer in newcomers:
            with suppress(RuntimeError):  # The event loop is closed, so nobody waits any more.
                newcomer.get_loop().call_soon_threadsafe(_settle, newcomer)

    def _disconnect(self) -> None:
        db, self._db = self._db, None
        watched, self._watched = self._watched, None
        if watched is not None:
            # This is necessary even if the driver has closed the connection already: the next one may get the same
            # descriptor, and would be taken for one that is watched.
            asyncio.get_running_loop().remove_reader(watched)
        if db is not None:
            db.close()


def _settle(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def merged(one: Hint, other: Hint) -> Hint:
    return Hint(
        ready=tuple(dict.fromkeys(one.ready + other.ready)),
        finished=tuple(dict.fromkeys(one.finished + other.finished)),
        many=one.many or other.many,
        control=one.control or other.control,
    )


def channel_of(schema: str) -> str:
    """Returns the name of the channel on which the stores of a schema notify one another."""
    return f"ropewalk_{blake2b(schema.encode(), digest_size=8).hexdigest()}"


def notifications(schema: str, queues: Iterable[str]) -> list[tuple[str, str]]:
    """Returns the notifications of new jobs in a user's transaction, as (channel, payload). They have no sender, so
    that every process heeds them."""
    return [(channel_of(schema), encode_hint("", Hint(ready=(queue,)))) for queue in queues]


def encode_hint(sender: str, hint: Hint) -> str:
    """Encodes a hint as the payload of one NOTIFY."""
    return encode_within(
        hint, PAYLOAD_BYTES_MAX, lambda shorter: msgspec.json.encode(Payload(sender, shorter))
    ).decode()
