"""The face a peer written in Python shows to its process: as little as the harness needs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from benchmarks.board import Board
from benchmarks.pace import Submitting


class Adapter(Submitting, Protocol):
    async def install(self) -> None:
        """Make its tables in an empty store."""
        ...

    def serving(self) -> AbstractAsyncContextManager[object]:
        """A worker on this loop (or in threads beside it) while the context lasts."""
        ...

    async def close(self) -> None: ...


MakeAdapter: TypeAlias = Callable[[str, Board], Adapter]
"""from the URL of the store and the board; connects at the first need"""
