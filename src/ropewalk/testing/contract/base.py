"""The fixtures every contract class uses. A backend's test class provides `backend`; the rest follows from it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract.backend import Backend
from ropewalk.testing.contract.bench import Bench


class Contract:
    pytestmark = pytest.mark.asyncio

    def __init_subclass__(cls) -> None:
        """Families are put together by inheritance: a name used twice would silently drop a test."""
        families: dict[str, type] = {}
        for family in cls.__mro__:
            for name in vars(family):
                if name.startswith("test_"):
                    first = families.setdefault(name, family)
                    assert first is family, f"{first.__name__} and {family.__name__} both define {name}"

    @pytest.fixture
    def backend(self) -> Backend:
        raise NotImplementedError(f"{type(self).__name__} must define a fixture `backend` that returns a Backend")

    @pytest.fixture
    def runtime(self) -> FakeRuntime:
        return FakeRuntime()

    @pytest_asyncio.fixture
    async def bench(self, backend: Backend, runtime: FakeRuntime) -> AsyncIterator[Bench]:
        """An opened, empty store under a fake clock, with short verbs."""
        store = await backend.open(runtime)
        yield Bench(store, runtime, backend)
        await backend.close()
