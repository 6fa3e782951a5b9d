"""The core of the storage port: what every store can do, as domain verbs, in batches.

The protocols that make up `Store` have the verbs of the core, each in a module with its messages. What only some
stores can do is in protocols of its own, and a store declares which of them it implements (capabilities.py). One
contract suite (ropewalk.testing.contract) defines what a backend is.

These rules hold for every verb:
- The store's clock decides: `now` in an answer is its time inside the transaction that gave the answer.
- One call is one atomic change, unless a batch says that its members are independent of one another.
- A verb returns only when the change is as durable as the store promises. If it raises StoreUnavailable, nothing has
  changed; if it raises OutcomeUnknown, something may have changed.
- Every write by a worker names seq, fence and owner, and changes nothing if they do not fit any more. The answer then
  says that the write is stale, and why; no error is raised.
- A verb sees only the jobs of one tenant; a job of another tenant is the same as a missing one.
- The domain decides what happens to a record; a store decides only who gets it.
- Every verb is thread-safe and can be used from any event loop.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from ropewalk.ports.notifier import Notifier
from ropewalk.ports.store.leases import Leasing
from ropewalk.ports.store.maintenance import Maintaining
from ropewalk.ports.store.operations import Operating
from ropewalk.ports.store.reading import Reading
from ropewalk.ports.store.submission import Submitting

if TYPE_CHECKING:
    from ropewalk.ports.store.capabilities import Capability


class Durability(StrEnum):
    """The durability of a store: what an acknowledged write survives."""

    D0 = "gone with the process"
    D1 = "survives the kill of every process"
    D2 = "survives power loss"
    D3 = "survives the loss of a node"


class Store(Submitting, Operating, Leasing, Maintaining, Reading, Protocol):
    """A store with the verbs that every backend has. `capabilities` says what else it can do."""

    @property
    def name(self) -> str:
        """The word for this kind of store in messages, such as "memory"."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability[Any]]:
        """What the store can do beyond the core. This never changes."""
        ...

    @property
    def durability(self) -> Durability: ...

    @property
    def notifier(self) -> Notifier: ...

    async def open(self) -> None:
        """Connects, checks durability and schema, and migrates an empty store. Opening an open store changes nothing.

        Raises StoreRefused (SchemaMismatch, WeakDurability), StoreUnavailable or InvalidInput; the message says what to
        do.
        """
        ...

    async def close(self) -> None:
        """Finishes what was accepted, and releases everything. A store may be closed twice, and opened again."""
        ...
