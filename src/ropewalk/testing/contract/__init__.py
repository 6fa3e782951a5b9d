"""The contract of a store, as tests anybody can run against their own. Needs pytest, pytest-asyncio and hypothesis.

    from ropewalk.testing import contract

    class MyBackend(contract.Backend):
        ...                                     # four small methods: see backend.py

    class TestMyStore(contract.StoreContract):
        @pytest.fixture
        def backend(self) -> MyBackend:
            return MyBackend()

    TestMyStoreAgainstTheModel = contract.differential(MyBackend)

`StoreContract` is every family of examples (suite.py lists them); each is also a class of its own. `differential`
drives the store and the in-memory model side by side through random lives and compares every answer and every record.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(__name__)

from ropewalk.testing.contract.backend import Backend  # noqa: E402  rewriting is registered before these load
from ropewalk.testing.contract.machine import differential  # noqa: E402  likewise
from ropewalk.testing.contract.suite import StoreContract  # noqa: E402  likewise

__all__ = ["Backend", "StoreContract", "differential"]
