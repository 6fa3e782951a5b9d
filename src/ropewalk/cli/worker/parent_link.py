"""What ties a worker to the fleet it belongs to: it says through it that it has started, and drains when it is cut.

A socket, because its end closes with the process that holds it, however that process ends. It comes in a variable of
the environment, so that the command line is that of any worker; programs that handlers start get neither.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from typing import Final, Self

import msgspec

from ropewalk.cli.worker.announcement import Announcement
from ropewalk.ports.runtime import Runtime

VARIABLE: Final = "ROPEWALK_LEASH"
HURRIED_BY: Final = (signal.SIGINT,)
"""Not SIGTERM: a service manager sends it to all processes of a service, and the fleet passes its own on."""


def spelled(fd: int, name: str) -> dict[str, str]:
    """For the environment of a worker's process."""
    return {VARIABLE: f"{fd}:{name}"}


class Leash:
    """The worker's end."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        self._connection = connection
        self.name = name

    @classmethod
    def taken(cls) -> Self | None:
        """None for a worker that belongs to no fleet."""
        found = os.environ.pop(VARIABLE, None)
        if found is None:
            return None
        fd, _, name = found.partition(":")
        os.set_inheritable(int(fd), False)  # noqa: FBT003 # takes no keyword
        leash = cls(socket.socket(fileno=int(fd)), name)
        os.register_at_fork(after_in_child=leash._leave)
        return leash

    def heed(self, runtime: Runtime) -> None:
        """From now on, wherever the worker is in its life."""
        runtime.thread(self._watch, name="ropewalk-leash")

    def announce(self, announcement: Announcement) -> None:
        with contextlib.suppress(OSError):  # nobody is there any more: the watch has noticed
            self._connection.sendall(msgspec.json.encode(announcement) + b"\n")

    async def _watch(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.recv(1)  # blocks this thread, which has nothing else to do: nothing is ever sent
        os.kill(os.getpid(), signal.SIGTERM)

    def _leave(self) -> None:
        """In a process forked by a handler: it must not keep the socket open."""
        os.close(self._connection.detach())
