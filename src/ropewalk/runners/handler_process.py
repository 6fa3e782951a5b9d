"""A handler's process as its worker sees it: the worker starts it, exchanges messages with it, and kills and reaps it.

The process is spawned and never forked. It runs a program of its own (child.py) in a session of its own, so that what a
handler does to its process group does not reach the worker, and a Ctrl-C in the terminal does not reach the handler.
It works on POSIX systems only.

The fleet starts its workers with `interpreter_flags` and reports their ends with `exit_in_words`, too.
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

from ropewalk.runners.frames import HEADER, body_length, decode_handler_message, frame_of
from ropewalk.runners.messages import HandlerMessage, WorkerMessage


def interpreter_flags() -> list[str]:
    """The flags -O, -W and -X of this process, for the processes that it starts."""
    # Private, but the way multiprocessing and the test suite of Python start an interpreter like their own.
    return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined,no-any-return] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def exit_in_words(returncode: int) -> str:
    """How a process ended, for a sentence that begins with its name; the code of a signal is negative."""
    if returncode >= 0:
        return f"exited with code {returncode}"
    name = next((each.name for each in signal.Signals if each == -returncode), f"signal {-returncode}")
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


_PROGRAM: Final = (
    "import sys; fd, sys.path[:] = int(sys.argv[1]), sys.argv[2:]; del sys.argv[1:]; "
    "from ropewalk.runners.child import main; main(fd)"
)
"""The program gets the worker's current `sys.path`, so that it finds the handler's module as the worker found it."""

END_WAIT_SECONDS: Final = 1.0
"""How long a process may take to end after it has closed its pipe, before it is killed."""


class HandlerProcess:
    """A running handler's process and the pipe to it. Only one task at a time may use it."""

    def __init__(
        self, lifetime: ProcessLifetime, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bytes_max: int
    ) -> None:
        self.lifetime = lifetime
        self._reader = reader
        self._writer = writer
        self._bytes_max = bytes_max
        self.fresh = True
        """Whether it has not been given an attempt yet."""
        self.memory_mb: int | None = None
        """The memory bound of the handlers that run in it.

        A process runs handlers of one bound only, because what earlier handlers left in it counts against the bound.
        """

    @classmethod
    async def start(cls, bytes_max: int) -> Self:
        """Start a process. Raises OSError if the system has no process or descriptor left."""
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_connection(sock=ours)
            lifetime = ProcessLifetime(on_end=lambda: _end_reading(writer))
            process = cls(lifetime, reader, writer, bytes_max)
            try:
                await lifetime.begin(theirs.fileno())
            except BaseException:
                await process.close_pipe()
                raise
        return process

    def send(self, message: WorkerMessage) -> None:
        """Send a message. Raises LimitExceeded if it is too large.

        Nothing is raised for a process that has ended: `receive` returns None then.
        """
        self._writer.write(frame_of(message, self._bytes_max))

    async def receive(self) -> HandlerMessage | None:
        """The next message; None once the process has ended and all its messages were read. Raises InvalidMessage.

        A process that closes its pipe is about to end. It gets a second for that, so that its exit code is known.
        """
        try:
            header = await self._reader.readexactly(HEADER.size)
            body = await self._reader.readexactly(body_length(header, self._bytes_max))
        except (asyncio.IncompleteReadError, OSError):
            await self.lifetime.wait_for_end(END_WAIT_SECONDS)
            return None
        return decode_handler_message(body)

    async def kill(self) -> None:
        """Kill the process; return when it is reaped and its descriptors are closed."""
        await self.lifetime.kill()
        await self.close_pipe()

    async def close_pipe(self) -> None:
        """Close the pipe, upon which the process ends by itself."""
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class ProcessLifetime(asyncio.SubprocessProtocol):
    """The process as asyncio reports it, from its start until it is reaped."""

    def __init__(self, on_end: Callable[[], object]) -> None:
        self._on_end = on_end  # called when the process has ended
        self._ended = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    async def begin(self, fd: int) -> None:
        """Start the process, which inherits the descriptor `fd` of its end of the pipe."""
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
    def ended(self) -> bool:
        """Whether the process has ended and was reaped."""
        return self._ended.is_set()

    @property
    def pid(self) -> int:
        assert self._transport is not None, "it was begun"
        return self._transport.get_pid()

    async def wait_for_end(self, seconds: float) -> None:
        """Wait until the process has ended, but not longer than so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    async def kill(self) -> None:
        """Kill the process with everything that it started, and wait until it was reaped."""
        if not self.ended:
            self._kill_group()
        await self._ended.wait()

    @property
    def code(self) -> int:
        """The exit code of the process that has ended; the code of a signal is negative."""
        assert self._transport is not None, "it was begun"
        code = self._transport.get_returncode()
        assert code is not None, "it ended"
        return code

    def exit_in_words(self) -> str:
        """How the process has ended, for a sentence that begins with its name."""
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
    """End the reading of the pipe with the process, even if a program that it started holds the other end open."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").shutdown(socket.SHUT_RD)
