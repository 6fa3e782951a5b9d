"""Every kind of connection a user may bring, with one face: statements, savepoints, commit, rollback."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import asyncpg
import psycopg
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

import ropewalk
from ropewalk import App, Handle, Job


class Driver(ABC):
    """One connection, in a transaction from `open` on and again after each commit or rollback."""

    store: ClassVar[str] = "postgres"
    tells: ClassVar[bool] = False
    """whether hooks hear of the commit"""
    connection: Any

    async def enqueue(self, app: App, job: Job[Any, Any], **options: Any) -> Handle[Any, Any]:
        return await app.enqueue(job, connection=self.connection, **options)

    async def enqueue_many(self, app: App, jobs: Sequence[Job[Any, Any]], **options: Any) -> list[str]:
        return [each.id for each in await app.enqueue_many(jobs, connection=self.connection, **options)]

    @abstractmethod
    async def open(self, place: str) -> None: ...

    @abstractmethod
    async def run(self, sql: str) -> list[tuple[Any, ...]]: ...

    @abstractmethod
    async def commit(self) -> None: ...

    @abstractmethod
    async def rollback(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    async def savepoint(self) -> None:
        await self.run("SAVEPOINT mine")

    async def rollback_to_savepoint(self) -> None:
        await self.run("ROLLBACK TO SAVEPOINT mine")

    async def release_savepoint(self) -> None:
        await self.run("RELEASE SAVEPOINT mine")


class Psycopg(Driver):
    async def open(self, place: str) -> None:
        self.connection = psycopg.connect(place)

    async def run(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(sql)
        return cursor.fetchall() if cursor.description is not None else []

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def close(self) -> None:
        self.connection.close()


class PsycopgThroughSync(Psycopg):
    async def enqueue(self, app: App, job: Job[Any, Any], **options: Any) -> Any:
        return app.sync.enqueue(job, connection=self.connection, **options)._handle

    async def enqueue_many(self, app: App, jobs: Sequence[Job[Any, Any]], **options: Any) -> list[str]:
        return [each.id for each in app.sync.enqueue_many(jobs, connection=self.connection, **options)]


class PsycopgAsync(Driver):
    async def open(self, place: str) -> None:
        self.connection = await psycopg.AsyncConnection.connect(place)

    async def run(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = await self.connection.execute(sql)
        return await cursor.fetchall() if cursor.description is not None else []

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def close(self) -> None:
        await self.connection.close()


class Asyncpg(Driver):
    async def open(self, place: str) -> None:
        self.connection = await asyncpg.connect(place)
        await self._begin()

    async def _begin(self) -> None:
        self._transactions = [self.connection.transaction()]
        await self._transactions[0].start()

    async def run(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.connection.fetch(sql)]

    async def savepoint(self) -> None:
        nested = self.connection.transaction()
        await nested.start()
        self._transactions.append(nested)

    async def rollback_to_savepoint(self) -> None:
        await self._transactions.pop().rollback()

    async def release_savepoint(self) -> None:
        await self._transactions.pop().commit()

    async def commit(self) -> None:
        await self._transactions.pop().commit()
        await self._begin()

    async def rollback(self) -> None:
        await self._transactions.pop().rollback()
        await self._begin()

    async def close(self) -> None:
        await self._transactions[0].rollback()
        await self.connection.close()


class AsyncpgPool(Asyncpg):
    async def open(self, place: str) -> None:
        self._pool = await asyncpg.create_pool(place, min_size=1, max_size=1)
        self.connection = await self._pool.acquire()
        assert type(self.connection).__name__ == "PoolConnectionProxy"
        await self._begin()

    async def close(self) -> None:
        await self._transactions[0].rollback()
        await self._pool.release(self.connection)
        await self._pool.close()


class AlchemySession(Driver):
    tells = True
    _driver: ClassVar[str] = "postgresql+psycopg"

    async def open(self, place: str) -> None:
        self._engine = create_engine(place.replace("postgresql", self._driver))
        self.connection = self._session()

    def _session(self) -> Any:
        return Session(self._engine)

    async def run(self, sql: str) -> list[tuple[Any, ...]]:
        found = self.connection.execute(text(sql))
        return [tuple(row) for row in found] if found.returns_rows else []

    async def savepoint(self) -> None:
        self._nested = self.connection.begin_nested()

    async def rollback_to_savepoint(self) -> None:
        self._nested.rollback()

    async def release_savepoint(self) -> None:
        self._nested.commit()

    async def commit(self) -> None:
        self.connection.commit()

    async def rollback(self) -> None:
        self.connection.rollback()

    async def close(self) -> None:
        self.connection.close()
        self._engine.dispose()


class AlchemyScoped(AlchemySession):
    def _session(self) -> Any:
        return scoped_session(sessionmaker(self._engine))


class AlchemyConnection(AlchemySession):
    tells = False

    def _session(self) -> Any:
        return self._engine.connect()


class AlchemyAsyncSession(Driver):
    tells = True
    _driver: ClassVar[str] = "postgresql+asyncpg"

    async def open(self, place: str) -> None:
        self._engine = create_async_engine(place.replace("postgresql", self._driver))
        self.connection = await self._session()

    async def _session(self) -> Any:
        return AsyncSession(self._engine)

    async def run(self, sql: str) -> list[tuple[Any, ...]]:
        found = await self.connection.execute(text(sql))
        return [tuple(row) for row in found] if found.returns_rows else []

    async def savepoint(self) -> None:
        self._nested = await self.connection.begin_nested()

    async def rollback_to_savepoint(self) -> None:
        await self._nested.rollback()

    async def release_savepoint(self) -> None:
        await self._nested.commit()

    async def commit(self) -> None:
        await self.connection.commit()

    async def rollback(self) -> None:
        await self.connection.rollback()

    async def close(self) -> None:
        await self.connection.close()
        await self._engine.dispose()


class AlchemyAsyncConnection(AlchemyAsyncSession):
    tells = False

    async def _session(self) -> Any:
        return await self._engine.connect()


class AlchemyAsyncPsycopg(AlchemyAsyncSession):
    _driver = "postgresql+psycopg"


class Sqlite(Psycopg):
    store = "sqlite"

    async def open(self, place: str) -> None:
        self.connection = ropewalk.sqlite3.connect(place)


class SqliteThroughSync(PsycopgThroughSync):
    store = "sqlite"

    async def open(self, place: str) -> None:
        self.connection = ropewalk.sqlite3.connect(place)


class AlchemySqliteSession(AlchemySession):
    store = "sqlite"

    async def open(self, place: str) -> None:
        self._engine = create_engine(f"sqlite:///{place}", module=ropewalk.sqlite3)
        self.connection = self._session()


class AlchemySqliteConnection(AlchemyConnection, AlchemySqliteSession):
    store = "sqlite"


ON_POSTGRES: list[type[Driver]] = [
    *(Psycopg, PsycopgThroughSync, PsycopgAsync, Asyncpg, AsyncpgPool),
    *(AlchemySession, AlchemyScoped, AlchemyConnection),
    *(AlchemyAsyncSession, AlchemyAsyncConnection, AlchemyAsyncPsycopg),
]
ON_SQLITE: list[type[Driver]] = [Sqlite, SqliteThroughSync, AlchemySqliteSession, AlchemySqliteConnection]
EVERY = [*ON_POSTGRES, *ON_SQLITE]
ASYNCHRONOUS: list[type[Driver]] = [PsycopgAsync, Asyncpg, AlchemyAsyncSession, AlchemyAsyncPsycopg]
