"""The in-memory store keeps the contract."""

from __future__ import annotations

import pytest

from ropewalk.backends.memory.store import MemoryStore
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store import Store
from ropewalk.testing import contract


class MemoryBackend(contract.Backend):
    def __init__(self) -> None:
        self._store: MemoryStore | None = None

    async def open(self, runtime: Runtime) -> Store:
        if self._store is None:
            self._store = MemoryStore(runtime)
        return self._store

    async def close(self) -> None:
        self._store = None

    async def raise_epoch(self, store: Store, epoch: int) -> None:
        assert isinstance(store, MemoryStore)
        store._tables.epoch = epoch

    async def set_format(self, store: Store, tenant: str, job_id: str, version: int) -> None:
        assert isinstance(store, MemoryStore)
        tables = store._tables
        job = tables.find(tenant, job_id)
        assert job is not None
        tables.take_up(job)
        job.format = version
        job.rev += 1
        tables.put_back(job, await store.clock())


class TestMemory(contract.StoreContract):
    @pytest.fixture
    def backend(self) -> MemoryBackend:
        return MemoryBackend()


TestMemoryAgainstItself = contract.differential(MemoryBackend)
