"""pgqueuer with batches of 500 instead of 10."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.board import Board
from benchmarks.payload import TEXT
from benchmarks.peers.python.adapter import Adapter

BATCH: Final = 500
CALLERS_POOL: Final = 20


def make(url: str, board: Board) -> Adapter:
    return PgQueuerAdapter(url, board, batch=BATCH)


class PgQueuerAdapter(Adapter):
    def __init__(self, url: str, board: Board, *, batch: int) -> None:
        self._url, self._board, self._batch = url, board, batch
        self._pool: Any = None
        self._queries: Queries | None = None

    async def install(self) -> None:
        connection = await asyncpg.connect(self._url)
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    async def submit(self, number: int) -> None:
        await (await self._opened()).enqueue("work", _payload(number))

    async def submit_many(self, numbers: range) -> None:
        payloads = [_payload(number) for number in numbers]
        await (await self._opened()).enqueue(["work"] * len(payloads), payloads, [0] * len(payloads))

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None, None]:
        connection = await asyncpg.connect(self._url)
        queue = PgQueuer(AsyncpgDriver(connection))

        @queue.entrypoint("work")
        async def work(job: Job) -> None:
            assert job.payload is not None
            self._board.mark(json.loads(job.payload)["number"])

        running = asyncio.create_task(queue.run(batch_size=self._batch))
        try:
            yield
        finally:
            queue.shutdown.set()
            await running
            await connection.close()

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()

    async def _opened(self) -> Queries:
        if self._queries is None:
            self._pool = await asyncpg.create_pool(self._url, min_size=CALLERS_POOL, max_size=CALLERS_POOL)
            self._queries = Queries(AsyncpgPoolDriver(self._pool))
        return self._queries


def _payload(number: int) -> bytes:
    return json.dumps({"number": number, "text": TEXT}).encode()
