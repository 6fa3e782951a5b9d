"""A handler's process, as the worker holds it: started, spoken to, killed with everything it started, and reaped.

Spawned, never forked: a program of its own (child.py), in a session of its own, so that what a handler does to its
process group does not reach the worker, nor a terminal's Ctrl-C the handler. POSIX only.

Python processes like this one: with which flags they are started, and how one ended, in words.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Final, Self, cast

from ropewalk.runners.frames import HEADER, body_length, framed, report
from ropewalk.runners.messages import Order, Report


def interpreter_flags() -> list[str]:
    """-O, -W, -X of this process hold in those it starts too."""
    # Private, but the way multiprocessing and the test suite of Python start an interpreter like their own.
    return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined,no-any-return] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def exit_in_words(returncode: int) -> str:
    if returncode >= 0:
        return f"exited with code {returncode}"
    name = next((each.name for each in signal.Signals if each == -returncode), f"signal {-returncode}")
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


_PROGRAM: Final = (
    "import sys; fd, sys.path[:] = int(sys.argv[1]), sys.argv[2:]; del sys.argv[1:]; "
    "from ropewalk.runners.child import main; main(fd)"
)
"""a handler's module is found as the worker found it: by the worker's sys.path of that moment"""

ENDS_WITHIN_SECONDS: Final = 1.0
"""How long a process may take to end after it has closed its pipe, before it is killed."""


class HandlerProcess:
    """One at a time may speak to it."""

    def __init__(self, life: Life, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bytes_max: int) -> None:
        self.life = life
        self._reader = reader
        self._writer = writer
        self._bytes_max = bytes_max
        self.fresh = True
        """it was not given an attempt yet"""
        self.memory_mb: int | None = None
        """the bound of the handlers it runs: what others left in it does not count against theirs"""

    @classmethod
    async def start(cls, bytes_max: int) -> Self:
        """Raises OSError where the system has no process or descriptor to give."""
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_connection(sock=ours)
            life = Life(on_end=lambda: _end_reading(writer))
            process = cls(life, reader, writer, bytes_max)
            try:
                await life.begin(theirs.fileno())
            except BaseException:
                await process.hang_up()
                raise
        return process

    def send(self, message: Order) -> None:
        """Raises LimitExceeded. A process that is gone hears nothing; `receive` tells."""
        self._writer.write(framed(message, self._bytes_max))

    async def receive(self) -> Report | None:
        """None once the process is gone and all it said was read. Raises Garbled.

        A process that closes its pipe is about to end, and gets a second for it: how it ended is worth knowing.
        """
        try:
            header = await self._reader.readexactly(HEADER.size)
            body = await self._reader.readexactly(body_length(header, self._bytes_max))
        except (asyncio.IncompleteReadError, OSError):
            await self.life.ends_within(ENDS_WITHIN_SECONDS)
            return None
        return report(body)

    async def kill(self) -> None:
        """Returns when it is reaped and its descriptors are closed."""
        await self.life.kill()
        await self.hang_up()

    async def hang_up(self) -> None:
        """The process ends by itself when it hears nothing any more."""
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class Life(asyncio.SubprocessProtocol):
    """From spawn to the reaping."""

    def __init__(self, on_end: Callable[[], object]) -> None:
        self._on_end = on_end
        self._ended = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    async def begin(self, fd: int) -> None:
        await asyncio.get_running_loop().subprocess_exec(
            lambda: self,
            sys.executable,
            *interpreter_flags(),
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

    @property
    def over(self) -> bool:
        return self._ended.is_set()

    @property
    def pid(self) -> int:
        assert self._transport is not None, "it was begun"
        return self._transport.get_pid()

    async def ends_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    async def kill(self) -> None:
        if not self.over:
            self._kill_group()
        await self._ended.wait()

    @property
    def code(self) -> int:
        """By which it ended; that of a signal is negative."""
        assert self._transport is not None, "it was begun"
        code = self._transport.get_returncode()
        assert code is not None, "it ended"
        return code

    def how_it_ended(self) -> str:
        return exit_in_words(self.code)

    # ── what asyncio calls ──────────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def process_exited(self) -> None:
        assert self._transport is not None
        self._kill_group()
        self._transport.close()
        self._on_end()
        self._ended.set()

    def _kill_group(self) -> None:
        # Also after it was reaped, for what it left behind: nobody else's group has its number until the numbers
        # of the whole system went round once.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def _end_reading(writer: asyncio.StreamWriter) -> None:
    """The pipe ends with the process, even where a program it started holds the other end open."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").shutdown(socket.SHUT_RD)
