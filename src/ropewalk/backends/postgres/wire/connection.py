"""A connection that does not wait for ever: it is closed if the server sends nothing for too long.

Keepalives notice a broken network path. They do not notice a pooler, a proxy or a server that is stuck and keeps the
connection open, for which a worker would wait until it is restarted. The silence is measured in the intervals at which
the driver wakes up anyway, so it needs no clock and no thread.

An event loop can also wait for an answer itself. A thread beside an event loop that computes gets the interpreter only
when the loop releases it, after up to 5 ms, and again at each of its steps that waits for something.
"""

from __future__ import annotations

import asyncio
import select
from typing import Any, Final, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.waiting import Ready, Wait

T = TypeVar("T")


async def wait_on_loop(work: PQGen[T], socket: int, interval_seconds: float) -> T:
    """Runs a generator of the driver that waits for a socket. After each interval in which nothing came, the generator
    is resumed without input."""
    loop = asyncio.get_running_loop()
    try:
        wanted = next(work)
        while True:
            wanted = work.send(await _ready(loop, socket, wanted, interval_seconds))
    except StopIteration as end:
        answer: T = end.value
        return answer


def can_watch(socket: int) -> bool:
    """Whether the running event loop can wait for a socket that is not its own; the proactor of Windows cannot."""
    try:
        asyncio.get_running_loop().remove_reader(socket)
    except NotImplementedError:
        return False
    return True


def has_input(socket: int) -> bool:
    """Whether there is something to read at this moment."""
    if not hasattr(select, "poll"):
        return bool(select.select([socket], [], [], 0)[0])
    looking = select.poll()
    looking.register(socket, select.POLLIN)
    return bool(looking.poll(0))


async def _ready(loop: asyncio.AbstractEventLoop, socket: int, wanted: Wait, seconds: float) -> Ready:
    came: asyncio.Future[Ready] = loop.create_future()
    timer = loop.call_later(seconds, _set_ready, came, Ready.NONE)
    if wanted & Wait.R:
        loop.add_reader(socket, _set_ready, came, Ready.R)
    if wanted & Wait.W:
        loop.add_writer(socket, _set_ready, came, Ready.W)
    try:
        return await came
    finally:
        timer.cancel()
        loop.remove_reader(socket)
        loop.remove_writer(socket)


def _set_ready(came: asyncio.Future[Ready], ready: Ready) -> None:
    if not came.done():
        came.set_result(ready)


LOOK_SECONDS: Final = 0.1
SILENCE_SECONDS_MAX: Final = 15.0
"""This is longer than the wait for a lock; a worker that waited this long still resumes within half a minute."""


class Silence(psycopg.OperationalError):
    """The server sent nothing for too long. The connection is closed."""


class WatchedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection of psycopg that gives up after too long a silence."""

    silence_seconds_max: float | None = SILENCE_SECONDS_MAX
    """The answer of one round trip may take this long; None means any time."""

    async def wait_on_loop(self, gen: PQGen[T]) -> T:
        """Waits on the running event loop, which goes on meanwhile. If this is cancelled, the connection is closed,
        because the rest of the answer would be taken for that of the next question."""
        if self.silence_seconds_max is not None:
            gen = _impatient(gen, self.silence_seconds_max, LOOK_SECONDS)
        try:
            return await wait_on_loop(gen, self.pgconn.socket, LOOK_SECONDS)
        except (Silence, asyncio.CancelledError):
            self.close()
            raise

    def wait(self, gen: PQGen[T], interval: float = LOOK_SECONDS, *rest: Any, **options: Any) -> T:
        if self.silence_seconds_max is not None and interval > 0:
            gen = _impatient(gen, self.silence_seconds_max, interval)
        try:
            return super().wait(gen, interval, *rest, **options)
        except Silence:
            self.close()  # A late answer would be taken for that of the next question.
            raise


def _impatient(work: PQGen[T], seconds_max: float, interval_seconds: float) -> PQGen[T]:
    """Runs the driver's generator, and raises Silence if nothing came for too long."""
    silent_seconds = 0.0
    try:
        wanted = next(work)
        while True:
            ready = yield wanted
            silent_seconds = 0.0 if ready else silent_seconds + interval_seconds
            if silent_seconds >= seconds_max:
                raise Silence(f"no answer for {seconds_max:g} s")
            wanted = work.send(ready)
    except StopIteration as end:
        answer: T = end.value
        return answer
