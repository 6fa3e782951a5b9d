"""What ties a worker to the fleet it belongs to: it says through it that it has started, and drains when it is cut.

A socket, because its end closes with the process that holds it, however that process ends. It comes in a variable of
the environment, so that the command line is that of any worker; programs that handlers start get neither.

Who works where: what a worker says of itself once it has started, in one line or one JSON document.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Sequence
from typing import Final, Self

import msgspec
from msgspec import Struct, to_builtins

from ropewalk.app import App
from ropewalk.cli import render
from ropewalk.ports.runtime import Runtime
from ropewalk.worker.worker import Worker


class Announcement(Struct, frozen=True, kw_only=True):
    worker: str
    store: str
    durability: str
    types: list[str]
    concurrency: int | None
    """None: as many as there are"""
    grace_seconds: float

    @classmethod
    def of(cls, worker: Worker, app: App) -> Announcement:
        """Of one that has started: each start has an id of its own."""
        return cls(
            worker=worker.id,
            store=app.url,
            durability=app.durability.value,
            types=list(worker.types),
            concurrency=worker.concurrency,
            grace_seconds=worker.grace_seconds,
        )

    def show(self, *, as_json: bool) -> None:
        if as_json:
            render.echo_json(to_builtins(self))
        else:
            render.echo(f"worker {self.worker} on {self._where()} at a time")

    def show_all(self, workers: Sequence[str], *, as_json: bool) -> None:
        """Several processes that differ in nothing but who they are."""
        if as_json:
            alike = {name: value for name, value in to_builtins(self).items() if name != "worker"}
            render.echo_json({"workers": workers, **alike})
        else:
            render.echo(f"workers {', '.join(workers)} on {self._where()} at a time each")

    def _where(self) -> str:
        number = "any number" if self.concurrency is None else self.concurrency
        return f"{self.store} ({self.durability}): {', '.join(self.types)}; {number}"


VARIABLE: Final = "ROPEWALK_LEASH"
HURRIED_BY: Final = (signal.SIGINT,)
"""Not SIGTERM: a service manager sends it to all processes of a service, and the fleet passes its own on."""


def spelled(fd: int, name: str) -> dict[str, str]:
    """For the environment of a worker's process."""
    return {VARIABLE: f"{fd}:{name}"}


class ParentLink:
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
