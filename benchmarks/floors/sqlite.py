"""The floor on SQLite: one table, WAL, synchronous=FULL, acknowledgement and next claim in one transaction.

The process model is that of any queue for asyncio: a thread for the database, so that handlers go on while it waits
for the disk. A datagram to a socket beside the file wakes idle workers. Concurrent submits share a commit.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from benchmarks.floors.call import Arguments, Handler, Ids, decode, encode
from ropewalk.backends.sqlite.library import sqlite

P = ParamSpec("P")
T = TypeVar("T")
Row: TypeAlias = tuple[str, int, float, bytes]
"""(id, priority, run_at, payload)"""

BATCH: Final = 500
SLOTS: Final = 100
LEASE_SECONDS: Final = 30.0
POLL_SECONDS: Final = 1.0

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS job (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, priority INTEGER, run_at REAL, payload BLOB,
                                attempt INTEGER DEFAULT 0, owner TEXT, expires_at REAL);
CREATE INDEX IF NOT EXISTS ready ON job (priority DESC, run_at, seq) WHERE owner IS NULL;
CREATE INDEX IF NOT EXISTS leased ON job (expires_at) WHERE owner IS NOT NULL;
CREATE TABLE IF NOT EXISTS counters (one INTEGER PRIMARY KEY, submitted INTEGER, completed INTEGER);
INSERT OR IGNORE INTO counters VALUES (1, 0, 0);
"""
INSERT: Final = "INSERT INTO job (id, priority, run_at, payload) VALUES (?, ?, ?, ?)"
ACKNOWLEDGE: Final = "DELETE FROM job WHERE seq = ? AND owner = ?"
RECLAIM: Final = "UPDATE job SET owner = NULL WHERE owner IS NOT NULL AND expires_at < ?"
CLAIM: Final = """
UPDATE job SET owner = ?, expires_at = ?, attempt = attempt + 1
WHERE seq IN (SELECT seq FROM job WHERE owner IS NULL AND run_at <= ? ORDER BY priority DESC, run_at, seq LIMIT ?)
RETURNING seq, payload
"""


class SqliteFloor:
    def __init__(self, path: Path, handler: Handler) -> None:
        self._path, self._handler = path, handler
        self._db = sqlite.connect(path, isolation_level=None, timeout=30, check_same_thread=False)
        self._db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;" + SCHEMA)
        self._thread = ThreadPoolExecutor(1)
        self._ids = Ids()
        self._pending: list[Row] = []
        self._under_way: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None
        self._bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._bell.settimeout(0)

    async def submit(self, calls: list[Arguments], *, priority: int = 0, run_at: float = 0.0) -> list[str]:
        """The ids of the new jobs, in the order of the calls, once they are durable."""
        rows = [(self._ids.take(), priority, run_at, encode(arguments)) for arguments in calls]
        self._pending.extend(rows)
        if self._next is None:
            self._next = asyncio.create_task(self._flush())
        await self._next
        return [row[0] for row in rows]

    async def _flush(self) -> None:
        """Everything that gathers while the flush before is under way."""
        if self._under_way is not None:
            await self._under_way
        self._under_way, self._next = self._next, None
        rows, self._pending = self._pending, []
        await self._in_thread(self._insert, rows)
        for worker in self._path.parent.glob("wake-*"):
            with suppress(OSError):
                self._bell.sendto(b"!", str(worker))

    def _insert(self, rows: list[Row]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(INSERT, rows)
        self._db.execute("UPDATE counters SET submitted = submitted + ?", (len(rows),))
        self._db.execute("COMMIT")

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None, None]:
        wake, owner = asyncio.Event(), f"wake-{os.getpid()}"
        ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ear.settimeout(0)
        ear.bind(str(self._path.with_name(owner)))
        asyncio.get_running_loop().add_reader(ear, _hear, ear, wake)
        worker = asyncio.create_task(self._work(owner, wake))
        try:
            yield
        finally:
            worker.cancel()
            await asyncio.wait([worker])
            await self._in_thread(self._give_back, owner)  # a claim that was under way when it stopped
            asyncio.get_running_loop().remove_reader(ear)
            ear.close()
            self._path.with_name(owner).unlink()

    async def _work(self, owner: str, wake: asyncio.Event) -> None:
        done: list[int] = []
        while True:
            wake.clear()
            batch = await self._in_thread(self._acknowledge_and_claim, owner, done)
            if not batch:
                with suppress(TimeoutError):
                    await asyncio.wait_for(wake.wait(), POLL_SECONDS)
            done = []
            await asyncio.gather(*(self._slot(batch, done) for _ in range(min(SLOTS, len(batch)))))

    def _acknowledge_and_claim(self, owner: str, done: list[int]) -> deque[Any]:
        now = time.time()
        self._db.execute("BEGIN IMMEDIATE")
        gone = self._db.executemany(ACKNOWLEDGE, ((seq, owner) for seq in done)).rowcount if done else 0
        if gone:
            self._db.execute("UPDATE counters SET completed = completed + ?", (gone,))
        self._db.execute(RECLAIM, (now,))
        batch = deque(self._db.execute(CLAIM, (owner, now + LEASE_SECONDS, now, BATCH)).fetchall())
        self._db.execute("COMMIT")
        return batch

    def _give_back(self, owner: str) -> None:
        self._db.execute("UPDATE job SET owner = NULL WHERE owner = ?", (owner,))

    async def _slot(self, batch: deque[Any], done: list[int]) -> None:
        while batch:
            seq, payload = batch.popleft()
            await self._handler(**decode(payload))
            done.append(seq)

    async def counts(self) -> tuple[int, int]:
        """How many were ever submitted, and completed."""
        return await self._in_thread(self._read_counts)

    def _read_counts(self) -> tuple[int, int]:
        submitted, completed = self._db.execute("SELECT submitted, completed FROM counters").fetchone()
        return submitted, completed

    async def close(self) -> None:
        self._thread.shutdown()
        self._db.close()
        self._bell.close()

    async def _in_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(call, *args, **kwargs))


def _hear(ear: socket.socket, wake: asyncio.Event) -> None:
    ear.recv(1)
    wake.set()
