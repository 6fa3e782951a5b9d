"""A process that takes orders: a line on its stdin is an order, a line on its stdout an answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
ANSWER_SECONDS_MAX: Final = 300.0
LINE_BYTES_MAX: Final = 2**24
"""an answer may name a moment for each of many jobs"""


class Ordered:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._orders, self._answers = process, process.stdin, process.stdout

    @classmethod
    async def start(cls, command: list[str]) -> Ordered:
        """Returns at once; it says `ready` when it is."""
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=ROOT, limit=LINE_BYTES_MAX)
        )

    def tell(self, order: str) -> None:
        self._orders.write(f"{order}\n".encode())

    async def answer(self) -> str:
        return (await asyncio.wait_for(self._answers.readline(), ANSWER_SECONDS_MAX)).decode().strip()

    async def expect(self, answer: str) -> None:
        said = await self.answer()
        if said != answer:
            raise RuntimeError(f"a process said {said!r} instead of {answer!r}; what went wrong is on stderr")

    async def gone(self) -> None:
        await asyncio.wait_for(self._process.wait(), ANSWER_SECONDS_MAX)
