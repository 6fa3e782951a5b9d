"""The SQLite store keeps the contract."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from ropewalk.backends.sqlite import SqliteStore
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store
from ropewalk.testing import contract

# What is asked here does not depend on the disk; thousands of real fsyncs would take minutes.
FAST = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class SqliteBackend(contract.Backend):
    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="ropewalk-test-", dir=FAST))
        self._stores: list[SqliteStore] = []

    @property
    def path(self) -> Path:
        return self._directory / "jobs.db"

    async def open(self, runtime: Runtime) -> Store:
        store = SqliteStore(self.path, runtime)
        self._stores.append(store)
        await store.open()
        return store

    async def close(self) -> None:
        for store in self._stores:
            await store.close()
        shutil.rmtree(self._directory)

    async def raise_epoch(self, store: Store, epoch: int) -> None:
        await self._run(store, "UPDATE meta SET epoch = ?", epoch)

    async def set_format(self, store: Store, tenant: str, job_id: str, version: int) -> None:
        await self._run(store, "UPDATE job SET format = ? WHERE tenant = ? AND id = ?", version, tenant, job_id)

    async def _run(self, store: Store, sql: str, *values: int | str) -> None:
        assert isinstance(store, SqliteStore)
        await store._writer.ask(lambda tx: tx.run(sql, values))


class TestSqlite(contract.StoreContract):
    @pytest.fixture
    def backend(self) -> SqliteBackend:
        return SqliteBackend()


@pytest.mark.drawn
@pytest.mark.timeout(600)  # thousands of steps, one after the other
class TestSqliteAgainstTheModel(contract.differential(SqliteBackend)):  # type: ignore[misc] # no checker follows a class that a call makes
    """Random lives."""
