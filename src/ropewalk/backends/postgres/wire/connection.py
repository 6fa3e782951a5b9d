"""A connection that does not wait for ever: a server that says nothing for too long is taken for gone.

Keepalives notice a path that is gone. They do not notice a pooler, a proxy or a server that is stuck and still holds
the connection, and a worker would wait for it until it is restarted. Silence is counted in the intervals at which the
driver looks up anyway: no clock, no thread.

A conversation with the server that a loop waits for itself: no thread, and so no wait for the interpreter.

A thread beside a loop that computes gets the interpreter when the loop lets go of it for long enough, which it does not
do while it has work: up to 5 ms, at every step that has to wait for anything.
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
    """Drive the driver's conversation; told after each interval in which nothing came."""
    loop = asyncio.get_running_loop()
    try:
        wanted = next(work)
        while True:
            wanted = work.send(await _ready(loop, socket, wanted, interval_seconds))
    except StopIteration as end:
        answer: T = end.value
        return answer


def may_watch(socket: int) -> bool:
    """Some loops cannot wait for a socket that is not their own (Windows' proactor)."""
    try:
        asyncio.get_running_loop().remove_reader(socket)
    except NotImplementedError:
        return False
    return True


def has_come(socket: int) -> bool:
    """Whether there is something to read right now."""
    if not hasattr(select, "poll"):
        return bool(select.select([socket], [], [], 0)[0])
    looking = select.poll()
    looking.register(socket, select.POLLIN)
    return bool(looking.poll(0))


async def _ready(loop: asyncio.AbstractEventLoop, socket: int, wanted: Wait, seconds: float) -> Ready:
    came: asyncio.Future[Ready] = loop.create_future()
    timer = loop.call_later(seconds, _tell, came, Ready.NONE)
    if wanted & Wait.R:
        loop.add_reader(socket, _tell, came, Ready.R)
    if wanted & Wait.W:
        loop.add_writer(socket, _tell, came, Ready.W)
    try:
        return await came
    finally:
        timer.cancel()
        loop.remove_reader(socket)
        loop.remove_writer(socket)


def _tell(came: asyncio.Future[Ready], ready: Ready) -> None:
    if not came.done():
        came.set_result(ready)


LOOK_SECONDS: Final = 0.1
SILENCE_SECONDS_MAX: Final = 15.0
"""more than a lock is waited for; a worker that waited so long still resumes within half a minute"""


class Silence(psycopg.OperationalError):
    """The server said nothing for too long. The connection is closed."""


class WatchedConnection(psycopg.Connection[tuple[Any, ...]]):
    silence_seconds_max: float | None = SILENCE_SECONDS_MAX
    """how long one trip may take to be answered; None: as long as it likes"""

    async def wait_on_loop(self, gen: PQGen[T]) -> T:
        """On the running loop, which goes on meanwhile. Given up in the middle, the connection is of no more use."""
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
            self.close()  # whatever it still says answers a question nobody asks any more
            raise


def _impatient(work: PQGen[T], seconds_max: float, interval_seconds: float) -> PQGen[T]:
    """The driver's conversation, given up after so many looks in a row at which nothing had come."""
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
