"""The face every measured queue shows to the workloads. Numbers identify jobs; the board says which ones ran."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from benchmarks import pace
from benchmarks.pace import Pace, Submitted

StoreName: TypeAlias = Literal["memory", "sqlite", "postgres"]
Kind: TypeAlias = str
"""`ropewalk`, `floor`, or the name of a peer"""


class Subject(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def hand_in(self, how: Pace, numbers: range) -> Submitted:
        """Queue these jobs at that pace; returns when they are durable."""
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


@runtime_checkable
class Local(Subject, pace.Submitting, Protocol):
    """One that lives in this process."""

    def serving(self) -> AbstractAsyncContextManager[object]:
        """A worker in this process, on this loop, while the context lasts."""
        ...

    async def hand_in(self, how: Pace, numbers: range) -> Submitted:
        return await pace.submit(self, how, numbers)


class Answering(Local, Protocol):
    """One that also keeps results."""

    async def round_trip(self, number: int) -> int:
        """Queue one job and wait for its result, which is `number`."""
        ...
