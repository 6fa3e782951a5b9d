"""The contract of a store, as tests that the author of a backend runs. They need pytest, pytest-asyncio and hypothesis.

    from ropewalk.testing import contract

    class MyBackend(contract.Backend):
        ...                                     # four small methods: see backend.py

    class TestMyStore(contract.StoreContract):
        @pytest.fixture
        def backend(self) -> MyBackend:
            return MyBackend()

    TestMyStoreAgainstTheModel = contract.differential(MyBackend)

`StoreContract` combines all families (suite.py lists them); each family is a class whose docstring states one promise.
`differential` sends the same random calls to the store and to the in-memory model, and compares answers and records.

Docstrings name what a test proves: codes such as `safe-5` and `live-2` are the promises of docs/guarantees.md, and
codes such as `R12` number the features in the plan of this project.

| module | what it gives to tests |
|---|---|
| `backend` | the class that the author of a store implements |
| `base` | the base class of every family, with the fixtures `backend`, `runtime` and `bench` |
| `bench`, `workflow_bench` | the store of a test, with short methods for jobs, and for jobs that depend on each other |
| `builders` | jobs, gates, claims and settlements with plain defaults |
| `store_scheduler` | a small scheduler on the verbs of a store |
| `machine`, `machine_workflows`, `machine_schedules` | the random calls of `differential` |
| `lockstep`, `comparable` | the two stores of `differential`, and which parts of their answers must be equal |
| `strategies`, `workflow_strategies` | the random values of `differential` |
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(__name__)

from ropewalk.testing.contract.backend import Backend  # noqa: E402  rewriting is registered before these load
from ropewalk.testing.contract.machine import differential  # noqa: E402  likewise
from ropewalk.testing.contract.suite import StoreContract  # noqa: E402  likewise

__all__ = ["Backend", "StoreContract", "differential"]
