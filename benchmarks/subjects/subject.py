"""The face every measured queue shows to the workloads. Numbers identify jobs; the board says which ones ran."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeAlias

StoreName: TypeAlias = Literal["memory", "sqlite"]
Kind: TypeAlias = Literal["ropewalk", "floor"]


class Subject(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def submit(self, number: int) -> None:
        """Queue one job; returns when it is durable."""
        ...

    async def submit_many(self, numbers: range) -> None:
        """Queue many in one batch; returns when they are durable."""
        ...

    def serving(self) -> AbstractAsyncContextManager[object]:
        """A worker in this process, on this loop, while the context lasts."""
        ...

    async def unfinished(self) -> int:
        """How many jobs wait or run. Cheap when there are none."""
        ...

    async def submitted(self) -> int:
        """How many jobs the store ever accepted, by its own count."""
        ...

    async def completed(self) -> int:
        """How many jobs the store holds as done, by its own count."""
        ...


class Answering(Subject, Protocol):
    """One that also keeps results."""

    async def round_trip(self, number: int) -> int:
        """Queue one job and wait for its result, which is `number`."""
        ...
