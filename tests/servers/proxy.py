"""A TCP path that misbehaves: late, cut, mute, or losing exactly the answer to a commit.

It stands between a client and a PostgreSQL server and passes bytes on. Of the protocol it knows one thing: that a
client commits by the word COMMIT. `async with Proxy(server.port) as proxy:` serves on `proxy.port`.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Final, Literal, Self, TypeAlias

from tests.servers.free_port import HOST

LostPart: TypeAlias = Literal["request", "reply", "silence"]
"""of a commit: it never arrives; its answer never does; or that, and the connection is not even cut"""

CHUNK_BYTES: Final = 65_536
COMMIT: Final = b"COMMIT\0"
IDLE: Final = b"Z\0\0\0\x05I"
"""How the server ends its reply to what leaves no transaction open."""
RESET: Final = struct.pack("ii", 1, 0)
"""for SO_LINGER: closing says RST, and what was under way is gone"""


class Proxy:
    def __init__(self, target_port: int) -> None:
        self.latency_seconds = 0.0
        """of each packet, either way"""
        self.connections_made = 0
        self.commits_lost = 0
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._port: int | None = None
        self._lines: set[_Line] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._mute = False
        self._losing: tuple[LostPart, bytes] | None = None
        self._without_commit = False

    @property
    def port(self) -> int:
        assert self._port is not None, "it does not serve"
        return self._port

    async def __aenter__(self) -> Self:
        await self._listen(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Reset every connection, on both sides."""
        for line in list(self._lines):
            line.cut()

    def refuse(self) -> None:
        """Nobody listens any more: connections are reset, and new ones refused."""
        assert self._server is not None
        self._server.close()
        self.cut()

    async def accept_again(self) -> None:
        """After `refuse`, on the same port."""
        await self._listen(self.port)

    def go_mute(self) -> None:
        """A black hole: nothing arrives any more, nothing is closed, new connections hear nothing."""
        self._mute = True
        for line in self._lines:
            line.passing.clear()

    def speak_again(self, *, forgetting: bool) -> None:
        """The path is back. `forgetting` the connections there were, as a firewall does: they stay mute for ever."""
        self._mute = False
        for line in self._lines:
            if not forgetting:
                line.passing.set()

    def lose_commit(self, part: LostPart, *, mentioning: bytes, without_commit: bool = False) -> None:
        """Of the next transaction in which these bytes travel, either way, as they are or in hex.

        without_commit: also the reply to one statement that is a transaction of its own, as some claims are.
        """
        self._losing = (part, mentioning)
        self._without_commit = without_commit

    async def _listen(self, port: int) -> None:
        self._server = await asyncio.start_server(self._accept, HOST, port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections_made += 1
        line = _Line(writer)
        if not self._mute:
            line.passing.set()
        self._lines.add(line)
        try:
            await self._serve(line, reader)
        except (OSError, asyncio.CancelledError):
            pass  # a side went away, or the test is over: the other one is cut
        finally:
            line.cut()
            self._lines.discard(line)
            self._tasks.discard(task)

    async def _serve(self, line: _Line, reader: asyncio.StreamReader) -> None:
        await line.passing.wait()
        from_server, line.to_server = await asyncio.open_connection(HOST, self._target_port)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._pump(line, reader, line.to_server, by_client=True))
            both.create_task(self._pump(line, from_server, line.to_client, by_client=False))

    async def _pump(
        self, line: _Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, by_client: bool
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(CHUNK_BYTES):
                await asyncio.sleep(self.latency_seconds)
                if self._is_lost(line, data, by_client=by_client):
                    break
                await line.passing.wait()
                writer.write(data)
                await writer.drain()
            await line.passing.wait()  # the end does not arrive either
        line.cut()

    def _is_lost(self, line: _Line, data: bytes, *, by_client: bool) -> bool:
        """Whether this is where the connection is cut."""
        if self._losing is not None:
            line.said += data
        if by_client:
            ends = COMMIT in data
        else:
            ends = self._without_commit and data.endswith(IDLE) and self._mentioned(line.said)
        if ends:
            line.loses = self._lost_part(line)
        if line.loses is None or (line.loses == "request") is not by_client:
            return False
        self.commits_lost += 1
        if line.loses == "silence":
            line.passing.clear()
        return line.loses != "silence"

    def _lost_part(self, line: _Line) -> LostPart | None:
        """What is to be lost of this commit, if it is the one."""
        said, line.said = line.said, b""
        if self._losing is None:
            return None
        if not self._mentioned(said):
            return None
        part, _ = self._losing
        self._losing = None
        return part

    def _mentioned(self, said: bytes) -> bool:
        if self._losing is None:
            return False
        _, mentioned = self._losing
        return mentioned in said or mentioned.hex().encode() in said


class _Line:
    """One client's connection, and ours to the server in its name."""

    def __init__(self, to_client: asyncio.StreamWriter) -> None:
        self.to_client = to_client
        self.to_server: asyncio.StreamWriter | None = None
        self.passing = asyncio.Event()
        self.said = b""
        """since its last commit, by either side, while a commit is to be lost"""
        self.loses: LostPart | None = None

    def cut(self) -> None:
        for writer in (self.to_client, self.to_server):
            if writer is not None and not writer.is_closing():
                peer: socket.socket = writer.get_extra_info("socket")
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                writer.transport.abort()
