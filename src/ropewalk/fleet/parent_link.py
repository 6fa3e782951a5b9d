"""The link between a worker's process and the supervisor of its fleet.

Through the link the worker announces that it has started, or why it cannot start. When the supervisor dies, the link is
cut, and the worker drains. The link is a socket, because a socket is closed with the process that holds its other end,
however that process ends.
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
    """What a worker reports about itself when it has started."""

    worker: str
    """The id of the worker."""
    store: str
    """The URL of its store, with the password hidden."""
    durability: str
    types: list[str]
    concurrency: int | None
    """How many jobs run at a time; None means any number."""
    grace_seconds: float

    @classmethod
    def of(cls, worker: Worker, *, store: str, durability: Durability) -> Announcement:
        """Return the announcement of a worker that has started, because its id is new with each start."""
        return cls(
            worker=worker.id,
            store=store,
            durability=durability.value,
            types=list(worker.types),
            concurrency=worker.concurrency,
            grace_seconds=worker.grace_seconds,
        )


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line that is sent through the link: the announcement of a worker, or the reason why it did not start."""

    announcement: Announcement | None = None
    refusal: str | None = None


VARIABLE: Final = "ROPEWALK_PARENT_LINK"
"""The environment variable in which `ropewalk worker` finds its end of the link.

It is removed from the environment at once, so that programs that handlers start get neither variable nor socket.
"""
HURRIED_BY: Final = (signal.SIGINT,)
"""The signals that end the grace period when they arrive a second time.

SIGTERM is not among them: a service manager sends it to every process of a service, and the supervisor sends it, too.
"""


def environment_of(fd: int, name: str) -> dict[str, str]:
    """Return what to add to the environment of a worker's process that gets its end of the link as descriptor `fd`."""
    return {VARIABLE: f"{fd}:{name}"}


class ParentLink:
    """The worker's end of the link."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self._connection = connection
        self.name = name
        self.has_announced = False
        """Whether the worker has started and announced it."""

    @classmethod
    def from_environment(cls) -> Self | None:
        """Return the link that the environment names, or None if this worker belongs to no fleet."""
        found = os.environ.pop(VARIABLE, None)
        if found is None:
            return None
        fd, _, name = found.partition(":")
        return cls.on_descriptor(int(fd), name)

    @classmethod
    def on_descriptor(cls, fd: int, name: str) -> Self:
        """Return the link on a descriptor that this process was started with."""
        os.set_inheritable(fd, False)  # noqa: FBT003 # takes no keyword
        link = cls(socket.socket(fileno=fd), name)
        os.register_at_fork(after_in_child=link._leave)
        return link

    def drain_when_cut(self, runtime: Runtime) -> None:
        """From now on send this process SIGTERM when the link is cut, even before the worker has started."""
        runtime.thread(self._watch, name="ropewalk-parent-link")

    def announce(self, announcement: Announcement) -> None:
        """Tell the supervisor that the worker has started."""
        self.has_announced = True
        self._send(Message(announcement=announcement))

    def refuse(self, why: str) -> None:
        """Tell the supervisor why this process cannot start a worker."""
        self._send(Message(refusal=why))

    def _send(self, message: Message) -> None:
        with contextlib.suppress(OSError):  # the supervisor is gone: `_watch` has noticed it
            self._connection.sendall(msgspec.json.encode(message) + b"\n")

    async def _watch(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.recv(1)  # blocks until the link is cut: the supervisor never sends anything
        os.kill(os.getpid(), signal.SIGTERM)

    def _leave(self) -> None:
        """Close the socket in a process that a handler forks, which must not keep the link open."""
        os.close(self._connection.detach())
