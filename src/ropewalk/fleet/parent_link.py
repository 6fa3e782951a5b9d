"""What ties a worker's process to the fleet it belongs to: it says through it that it has started, and drains when it
is cut.

The link is a socket, because its end closes with the process that holds it, however that process ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from typing import Final, Self

import msgspec
from msgspec import Struct

from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Durability
from ropewalk.worker.worker import Worker


class Announcement(Struct, frozen=True, kw_only=True):
    """What a worker says of itself once it has started."""

    worker: str
    store: str
    durability: str
    types: list[str]
    concurrency: int | None
    """None: as many as there are"""
    grace_seconds: float

    @classmethod
    def of(cls, worker: Worker, *, store: str, durability: Durability) -> Announcement:
        """Of one that has started: each start has an id of its own."""
        return cls(
            worker=worker.id,
            store=store,
            durability=durability.value,
            types=list(worker.types),
            concurrency=worker.concurrency,
            grace_seconds=worker.grace_seconds,
        )


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line through the link: either that the worker has started, or why it did not."""

    announcement: Announcement | None = None
    refusal: str | None = None


VARIABLE: Final = "ROPEWALK_LEASH"
"""In which environment variable `ropewalk worker` finds its end, so that its command line is that of any worker. It
is taken out at once: programs that handlers start get neither the variable nor the socket."""
HURRIED_BY: Final = (signal.SIGINT,)
"""The signals that, sent a second time, do not let handlers finish. SIGTERM is not among them: a service manager sends
it to all processes of a service, and the fleet passes its own on."""


def spelled(fd: int, name: str) -> dict[str, str]:
    """For the environment of a worker's process."""
    return {VARIABLE: f"{fd}:{name}"}


class ParentLink:
    """The worker's end."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self._connection = connection
        self.name = name
        self.has_announced = False

    @classmethod
    def taken(cls) -> Self | None:
        """The link that the environment names; None for a worker that belongs to no fleet."""
        found = os.environ.pop(VARIABLE, None)
        if found is None:
            return None
        fd, _, name = found.partition(":")
        return cls.over(int(fd), name)

    @classmethod
    def over(cls, fd: int, name: str) -> Self:
        """The link on a descriptor that this process was started with."""
        os.set_inheritable(fd, False)  # noqa: FBT003 # takes no keyword
        link = cls(socket.socket(fileno=fd), name)
        os.register_at_fork(after_in_child=link._leave)
        return link

    def heed(self, runtime: Runtime) -> None:
        """From now on drain when the link is cut, wherever the worker is in its life."""
        runtime.thread(self._watch, name="ropewalk-leash")

    def announce(self, announcement: Announcement) -> None:
        self.has_announced = True
        self._send(Message(announcement=announcement))

    def refuse(self, why: str) -> None:
        """Say why this process cannot start a worker."""
        self._send(Message(refusal=why))

    def _send(self, message: Message) -> None:
        with contextlib.suppress(OSError):  # nobody is there any more: the watch has noticed
            self._connection.sendall(msgspec.json.encode(message) + b"\n")

    async def _watch(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.recv(1)  # blocks this thread, which has nothing else to do: nothing is ever sent
        os.kill(os.getpid(), signal.SIGTERM)

    def _leave(self) -> None:
        """In a process forked by a handler: it must not keep the socket open."""
        os.close(self._connection.detach())
