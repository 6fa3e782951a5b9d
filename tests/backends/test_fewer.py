"""Stores that can do less than the bundled ones: what they declare works, the rest is refused before it is written."""

from __future__ import annotations

from typing import Any

import pytest

from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import LIMITS, LOGS, Capability
from ropewalk.ports.store.core import Store
from ropewalk.testing import contract
from tests.backends.fewer import FewerStore
from tests.backends.test_memory import MemoryBackend


class FewerBackend(MemoryBackend):
    def __init__(self, *declared: Capability[Any]) -> None:
        super().__init__()
        self._declared = declared

    async def open(self, runtime: Runtime) -> Store:
        if self._store is None:
            self._store = FewerStore(runtime, self._declared)
        return self._store


class TestCoreOnly(contract.StoreContract):
    capabilities = frozenset()

    @pytest.fixture
    def backend(self) -> FewerBackend:
        return FewerBackend()


class TestLimitsAndLogs(contract.StoreContract):
    capabilities = frozenset({LIMITS, LOGS})

    @pytest.fixture
    def backend(self) -> FewerBackend:
        return FewerBackend(LIMITS, LOGS)
