"""The floor on PostgreSQL: two tables, acknowledgement and next claim in one statement, batches as arrays.

A job moves from `ready` to `lease` and is deleted there, so neither table keeps an index on a state that changes; by
its id it is found in either. Idle workers listen on a connection of their own; the wake-up is sent after the commit,
also on a connection of its own, where nobody waits for it. Concurrent submits share a commit. Everybody counts in a
row of their own.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, LiteralString, TypeAlias

import psycopg

from benchmarks.floors.call import Arguments, Handler, Ids, decode, encode

Connection: TypeAlias = psycopg.AsyncConnection[Any]
Row: TypeAlias = tuple[str, int, float, bytes]
"""(id, priority, run_at, payload)"""

BATCH: Final = 500
SLOTS: Final = 100
LEASE_SECONDS: Final = 30.0
POLL_SECONDS: Final = 1.0

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS ready (id text PRIMARY KEY, seq bigint GENERATED ALWAYS AS IDENTITY, priority integer,
                                  run_at float8, payload bytea, attempt integer DEFAULT 0);
CREATE INDEX IF NOT EXISTS ready_order ON ready (priority DESC, run_at, seq);
CREATE TABLE IF NOT EXISTS lease (id text PRIMARY KEY, seq bigint, priority integer, run_at float8, payload bytea,
                                  attempt integer, owner text, expires_at float8);
CREATE TABLE IF NOT EXISTS counters (owner text PRIMARY KEY, submitted bigint DEFAULT 0, completed bigint DEFAULT 0);
"""
INTRODUCE: Final = "INSERT INTO counters (owner) VALUES (%s) ON CONFLICT DO NOTHING"
INSERT: Final = """
WITH counted AS (UPDATE counters SET submitted = submitted + cardinality(%(ids)b::text[]) WHERE owner = %(owner)s)
INSERT INTO ready (id, priority, run_at, payload)
SELECT * FROM unnest(%(ids)b::text[], %(priorities)b::integer[], %(run_ats)b::float8[], %(payloads)b::bytea[])
"""
NOW: Final = "(SELECT extract(epoch FROM clock_timestamp())::float8)"
ACKNOWLEDGE_AND_CLAIM: Final = f"""
WITH gone AS (DELETE FROM lease WHERE id = ANY (%(done)b::text[]) AND owner = %(owner)s RETURNING id),
counted AS (UPDATE counters SET completed = completed + (SELECT count(*) FROM gone)
            WHERE owner = %(owner)s AND EXISTS (SELECT FROM gone)),
next AS MATERIALIZED (SELECT ctid FROM ready WHERE run_at <= {NOW}
                      ORDER BY priority DESC, run_at, seq LIMIT {BATCH} FOR UPDATE SKIP LOCKED),
taken AS (DELETE FROM ready WHERE ctid = ANY (ARRAY(SELECT ctid FROM next)) RETURNING *),
leased AS (INSERT INTO lease (id, seq, priority, run_at, payload, attempt, owner, expires_at)
           SELECT id, seq, priority, run_at, payload, attempt + 1, %(owner)s, {NOW} + {LEASE_SECONDS} FROM taken)
SELECT id, payload FROM taken ORDER BY priority DESC, run_at, seq
"""
RECLAIM: Final = f"""
WITH lost AS (DELETE FROM lease WHERE expires_at < {NOW} RETURNING *)
INSERT INTO ready (id, seq, priority, run_at, payload, attempt) OVERRIDING SYSTEM VALUE
SELECT id, seq, priority, run_at, payload, attempt FROM lost
"""


class PostgresFloor:
    def __init__(self, dsn: str, handler: Handler) -> None:
        self._dsn, self._handler = dsn, handler
        self._owner = f"worker-{secrets.token_hex(8)}"
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(SCHEMA)
            connection.execute(INTRODUCE, (self._owner,))
        self._ids = Ids()
        self._connections: dict[str, asyncio.Task[Connection]] = {}
        self._pending: list[Row] = []
        self._under_way: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None
        self._bell_due = False
        self._ringing: asyncio.Task[None] | None = None

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
        ids, priorities, run_ats, payloads = map(list, zip(*rows, strict=True))
        arrays = {"ids": ids, "priorities": priorities, "run_ats": run_ats, "payloads": payloads}
        await self._execute("submit", INSERT, arrays | {"owner": self._owner})
        self._bell_due = True
        if self._ringing is None or self._ringing.done():
            self._ringing = asyncio.create_task(self._ring())

    async def _ring(self) -> None:
        """One notification for all commits since the last one was sent."""
        bell = await self._connection("bell", "-csynchronous_commit=off")
        while self._bell_due:
            self._bell_due = False
            await bell.execute("NOTIFY job")

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None, None]:
        wake = asyncio.Event()
        ear = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
        await ear.execute("LISTEN job")
        tasks = [asyncio.create_task(_hear(ear, wake)), asyncio.create_task(self._work(wake))]
        tasks.append(asyncio.create_task(self._reclaim()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await ear.close()

    async def _work(self, wake: asyncio.Event) -> None:
        done: list[str] = []
        while True:
            wake.clear()
            answer = await self._execute("work", ACKNOWLEDGE_AND_CLAIM, {"done": done, "owner": self._owner})
            batch = deque(await answer.fetchall())
            if not batch:
                with suppress(TimeoutError):
                    await asyncio.wait_for(wake.wait(), POLL_SECONDS)
            done = []
            await asyncio.gather(*(self._slot(batch, done) for _ in range(min(SLOTS, len(batch)))))

    async def _slot(self, batch: deque[Any], done: list[str]) -> None:
        while batch:
            job_id, payload = batch.popleft()
            await self._handler(**decode(payload))
            done.append(job_id)

    async def _reclaim(self) -> None:
        while True:
            await self._execute("reclaim", RECLAIM, {})
            await asyncio.sleep(POLL_SECONDS)

    async def counts(self) -> tuple[int, int]:
        """How many were ever submitted, and completed."""
        asked = "SELECT sum(submitted)::bigint, sum(completed)::bigint FROM counters"
        submitted, completed = await (await self._execute("counts", asked, {})).fetchone() or (0, 0)
        return submitted, completed

    async def close(self) -> None:
        if self._ringing is not None:
            await self._ringing
        for connecting in self._connections.values():
            await (await connecting).close()

    async def _execute(self, use: str, statement: LiteralString, values: dict[str, Any]) -> psycopg.AsyncCursor[Any]:
        connection = await self._connection(use)
        return await connection.cursor(binary=True).execute(statement, values, prepare=True)

    async def _connection(self, use: str, options: str = "") -> Connection:
        """One for each use, opened at the first."""
        if use not in self._connections:
            connecting = psycopg.AsyncConnection.connect(self._dsn, autocommit=True, options=options)
            self._connections[use] = asyncio.create_task(connecting)
        return await asyncio.shield(self._connections[use])  # who is told to stop meanwhile leaves it to be closed


async def _hear(ear: Connection, wake: asyncio.Event) -> None:
    async for _ in ear.notifies():
        wake.set()
