"""A worker's process, as its fleet holds it: an ordinary `ropewalk worker`, spawned, on a leash.

In a process group of its own: a terminal's Ctrl-C reaches the supervisor alone, which passes it on. Its output is
the supervisor's own, and goes on without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from ropewalk.cli.worker.fleet import Member
from ropewalk.cli.worker.parent_link import Announcement, spelled
from ropewalk.runners.handler_process import interpreter_flags

LINE_BYTES_MAX: Final = 16 * 1024 * 1024


class WorkerProcess(Member):
    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @property
    def pid(self) -> int:
        return self._process.pid

    async def announced(self) -> Announcement | None:
        line = await self._reader.readline()
        return msgspec.json.decode(line, type=Announcement) if line.endswith(b"\n") else None

    async def ended(self) -> int:
        code = await self._process.wait()
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        return code

    def send(self, told: signal.Signals) -> None:
        # Not by send_signal: it looks first whether the process is over, and takes the exit code away from asyncio.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, told)


async def start_worker(name: str, arguments: Sequence[str]) -> WorkerProcess:
    """`ropewalk worker` with these arguments. Raises OSError."""
    ours, theirs = socket.socketpair()
    with theirs:
        reader, writer = await asyncio.open_connection(sock=ours, limit=LINE_BYTES_MAX)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *interpreter_flags(),
                "-m",
                "ropewalk",
                "worker",
                *arguments,
                env={**os.environ, **spelled(theirs.fileno(), name)},
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                process_group=0,
            )
        except OSError:
            writer.close()
            raise
    return WorkerProcess(process, reader, writer)
