"""Calls on one connection, one after another: two that crossed would take each other's savepoints back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, TypeVar

L = TypeVar("L")


class Turns:
    def __init__(self) -> None:
        self._blocking: Locks[threading.Lock] = Locks(threading.Lock)
        self._awaited: Locks[asyncio.Lock] = Locks(asyncio.Lock)

    @contextmanager
    def blocking(self, connection: object) -> Generator[None]:
        with self._blocking.of(connection) as lock, lock:
            yield

    @asynccontextmanager
    async def awaited(self, connection: object) -> AsyncGenerator[None]:
        with self._awaited.of(connection) as lock:
            async with lock:
                yield


class Locks(Generic[L]):
    """A lock for each connection in use, by its identity: not every driver's can be referred to weakly."""

    def __init__(self, make: Callable[[], L]) -> None:
        self._make = make
        self._mutex = threading.Lock()
        self._held: dict[int, tuple[L, int]] = {}
        """with the number of those who hold it or wait for it"""

    @contextmanager
    def of(self, connection: object) -> Generator[L]:
        lock = self._count(id(connection), 1)
        try:
            yield lock
        finally:
            self._count(id(connection), -1)

    def _count(self, key: int, change: int) -> L:
        with self._mutex:
            lock, users = self._held.pop(key) if key in self._held else (self._make(), 0)
            if users + change > 0:
                self._held[key] = lock, users + change
        return lock
