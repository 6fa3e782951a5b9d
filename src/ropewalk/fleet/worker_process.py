"""A worker's process as a member of a fleet: it is spawned, linked by a socket, and controlled by signals.

The process has a process group of its own, so that Ctrl-C in a terminal reaches only the supervisor, which passes it
on. It writes to the same stdout and stderr as the supervisor, and can still do so when the supervisor is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from ropewalk.fleet.fleet import Member
from ropewalk.fleet.parent_link import Announcement, Message
from ropewalk.runners.handler_process import interpreter_flags

LINE_BYTES_MAX: Final = 16 * 1024 * 1024
"""The longest message that a process may send through its link."""


class WorkerProcess(Member):
    """A process of the operating system that runs one worker of a fleet."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._refusal: str | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def refusal(self) -> str | None:
        return self._refusal

    async def announced(self) -> Announcement | None:
        line = await self._reader.readline()
        if not line.endswith(b"\n"):
            return None
        message = msgspec.json.decode(line, type=Message)
        self._refusal = message.refusal
        return message.announcement

    async def ended(self) -> int:
        code = await self._process.wait()
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        return code

    def send(self, which: signal.Signals) -> None:
        # Popen.send_signal would poll the process first, and take the exit code away from asyncio.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, which)


async def start_process(
    arguments: Callable[[int], Sequence[str]], environment: Callable[[int], Mapping[str, str]] = lambda _: {}
) -> WorkerProcess:
    """Start this Python with these arguments and additions to the environment; raise OSError if that is impossible.

    Both functions get the number of the descriptor on which the process finds its end of the link.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        reader, writer = await asyncio.open_connection(sock=ours, limit=LINE_BYTES_MAX)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *interpreter_flags(),
                *arguments(theirs.fileno()),
                env={**os.environ, **environment(theirs.fileno())},
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                process_group=0,
            )
        except OSError:
            writer.close()
            raise
    return WorkerProcess(process, reader, writer)
