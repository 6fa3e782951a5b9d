"""A handler's process, as the worker holds it: started, spoken to, killed with everything it started, and reaped.

Spawned, never forked: a program of its own (child.py), in a session of its own, so that what a handler does to its
process group does not reach the worker, nor a terminal's Ctrl-C the handler. POSIX only.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from typing import Final, Self

from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.runners.frames import HEADER, body_length, framed, report
from ropewalk.runners.messages import Order, Report

_PROGRAM: Final = (
    "import sys; fd, sys.path[:] = int(sys.argv[1]), sys.argv[2:]; del sys.argv[1:]; "
    "from ropewalk.runners.child import main; main(fd)"
)
"""a handler's module is found as the worker found it: by the worker's sys.path of that moment"""


class HandlerProcess:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bytes_max: int) -> None:
        self._reader = reader
        self._writer = writer
        self._bytes_max = bytes_max
        self._end = End(writer)
        self._transport: asyncio.SubprocessTransport | None = None
        self.attempts = 0
        """how many it was given"""

    @classmethod
    async def start(cls, bytes_max: int) -> Self:
        """Raises OSError where the system has no process or descriptor to give."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = cls(*await asyncio.open_connection(sock=ours), bytes_max)
            try:
                await process._spawn(theirs.fileno())
            except BaseException:
                await process._hang_up()
                raise
        return process

    @property
    def pid(self) -> int:
        return self._started.get_pid()

    @property
    def alive(self) -> bool:
        return self._started.get_returncode() is None

    def send(self, message: Order) -> None:
        """Raises LimitExceeded. A process that is gone hears nothing; `receive` tells."""
        self._writer.write(framed(message, self._bytes_max))

    async def receive(self) -> Report | None:
        """None once the process is gone and all it said was read. Raises Garbled."""
        try:
            header = await self._reader.readexactly(HEADER.size)
            body = await self._reader.readexactly(body_length(header, self._bytes_max))
        except (asyncio.IncompleteReadError, OSError):
            return None
        return report(body)

    async def kill(self) -> None:
        """With its whole process group; returns when it is reaped and its descriptors are closed."""
        self._end.kill_group()
        await self._end.reached.wait()
        self._started.close()
        await self._hang_up()

    def epitaph(self) -> ErrorInfo:
        """Why a process that is gone ended, for the job that it took along."""
        return lost(f"the handler's process {_how(self._started.get_returncode())}")

    @property
    def _started(self) -> asyncio.SubprocessTransport:
        assert self._transport is not None, "start() spawned it"
        return self._transport

    async def _spawn(self, fd: int) -> None:
        flags = subprocess._args_from_interpreter_flags()
        self._transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: self._end,
            sys.executable,
            *flags,
            "-c",
            _PROGRAM,
            str(fd),
            *sys.path,
            stdin=subprocess.DEVNULL,
            stdout=None,
            stderr=None,
            pass_fds=(fd,),
            start_new_session=True,
        )

    async def _hang_up(self) -> None:
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
