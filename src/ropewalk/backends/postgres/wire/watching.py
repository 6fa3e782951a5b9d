"""A conversation with the server that a loop waits for itself: no thread, and so no wait for the interpreter.

A thread beside a loop that computes gets the interpreter when the loop lets go of it for long enough, which it does not
do while it has work: up to 5 ms, at every step that has to wait for anything.
"""

from __future__ import annotations

import asyncio
import select
from typing import TypeVar

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
