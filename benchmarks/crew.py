"""Those who do the work: a worker on the caller's own loop, or some in processes of their own.

They start idle and serve between `go` and `stop`, so that neither imports nor process starts are ever measured.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, Protocol

from benchmarks.subjects.subject import Kind, StoreName, Subject

ANSWER_SECONDS: Final = 60.0
ROOT: Final = Path(__file__).resolve().parent.parent


class Crew(Protocol):
    async def go(self) -> None:
        """Begin to serve; returns at once."""
        ...

    async def stop(self) -> None:
        """Serve no longer; returns when that is so. `go` may follow."""
        ...

    async def dismiss(self) -> None: ...


class Inside(Crew):
    """One worker on this loop."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._serving = AsyncExitStack()

    async def go(self) -> None:
        await self._serving.enter_async_context(self._subject.serving())

    async def stop(self) -> None:
        await self._serving.aclose()

    async def dismiss(self) -> None:
        """Nobody to send home."""


class Processes(Crew):
    """Worker processes, told by a line on stdin what to do; each answers with the same line when it is done."""

    def __init__(self, members: list[asyncio.subprocess.Process]) -> None:
        self._members = members

    @classmethod
    async def hire(cls, count: int, kind: Kind, store: StoreName, directory: Path) -> Processes:
        crew = cls([await _start(kind, store, directory, index) for index in range(count)])
        await crew._heard("ready")
        return crew

    async def go(self) -> None:
        self._tell("go")

    async def stop(self) -> None:
        self._tell("stop")
        await self._heard("stop")

    async def dismiss(self) -> None:
        self._tell("leave")
        for member in self._members:
            await asyncio.wait_for(member.wait(), ANSWER_SECONDS)

    def _tell(self, order: str) -> None:
        for member in self._members:
            assert member.stdin is not None
            member.stdin.write(f"{order}\n".encode())

    async def _heard(self, expected: str) -> None:
        for member in self._members:
            assert member.stdout is not None
            line = await asyncio.wait_for(member.stdout.readline(), ANSWER_SECONDS)
            if line.decode().strip() != expected:
                raise RuntimeError(f"a worker process said {line!r} instead of {expected!r}")


async def _start(kind: Kind, store: StoreName, directory: Path, index: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.member", kind, store, str(directory), str(index)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
