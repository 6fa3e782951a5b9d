"""The core of the storage port: what every store can do, as domain verbs, in batches.

The verbs of the core are in the modules that `Store` is put together from, each beside its messages. What only some
stores can do is in a protocol of its own, and a store declares it (capabilities.py). One contract suite
(ropewalk.testing.contract) defines a backend.

What holds for every verb:
- Time is the store's: `now` in an answer is its clock inside the transaction that gave it.
- One call is one atomic change, except where a batch says its members are independent of one another.
- A verb returns only when the change is as durable as the store promises; if it raises StoreUnavailable nothing
  changed, if it raises OutcomeUnknown it may have.
- Every write by a worker names (seq, fence, owner) and changes nothing when they no longer fit: such a write is
  answered as stale with the reason, not raised.
- Everything is scoped by tenant; another tenant's job is indistinguishable from a missing one.
- What happens to a record is decided by ropewalk.domain; a store decides only who gets it.
- Thread-safe, and usable from any event loop.
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
    """What an acknowledged write survives."""

    D0 = "gone with the process"
    D1 = "survives the kill of every process"
    D2 = "survives power loss"
    D3 = "survives the loss of a node"


class Store(Submitting, Operating, Leasing, Maintaining, Reading, Protocol):
    """What every backend can do. A backend declares what else it can do (capabilities.py)."""

    @property
    def name(self) -> str:
        """What messages call this kind of store: one word, such as "memory"."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability[Any]]:
        """What it can do beside the core. The same for as long as the store lives."""
        ...

    @property
    def durability(self) -> Durability: ...

    @property
    def notifier(self) -> Notifier: ...

    async def open(self) -> None:
        """Connect, check durability and schema, migrate an empty store. Idempotent.

        Raises StoreRefused (SchemaMismatch, WeakDurability), StoreUnavailable or InvalidInput, each saying what to do.
        """
        ...

    async def close(self) -> None:
        """Finish what was accepted, then release everything. Idempotent; the store may be opened again."""
        ...
