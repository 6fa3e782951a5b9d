"""Those who do the work: a worker on the caller's own loop, or some in processes of their own.

They start idle and serve between `go` and `stop`, so that neither imports nor process starts are ever measured.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Protocol

from benchmarks.ordered import Ordered
from benchmarks.subjects.subject import Local


class Crew(Protocol):
    async def go(self) -> None:
        """Begin to serve; returns at once."""
        ...

    async def stop(self) -> None:
        """Serve no longer; returns when that is so. `go` may follow."""
        ...

    async def unregister(self) -> None: ...


class Inside(Crew):
    """One worker on this loop."""

    def __init__(self, subject: Local) -> None:
        self._subject = subject
        self._serving = AsyncExitStack()

    async def go(self) -> None:
        await self._serving.enter_async_context(self._subject.serving())

    async def stop(self) -> None:
        await self._serving.aclose()

    async def unregister(self) -> None:
        """Nobody to send home."""


class Processes(Crew):
    """Worker processes: `go`, `stop` (answered when it is so), `leave`."""

    def __init__(self, members: list[Ordered]) -> None:
        self._members = members

    @classmethod
    async def hire(cls, commands: list[list[str]]) -> Processes:
        """One for each command."""
        crew = cls([await Ordered.start(command) for command in commands])
        for member in crew._members:
            await member.expect("ready")
        return crew

    async def go(self) -> None:
        for member in self._members:
            member.tell("go")

    async def stop(self) -> None:
        for member in self._members:
            member.tell("stop")
        for member in self._members:
            await member.expect("stop")

    async def unregister(self) -> None:
        for member in self._members:
            member.tell("leave")
        for member in self._members:
            await member.gone()
