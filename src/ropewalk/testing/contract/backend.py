"""What the author of a store hands to the suite: how to open it, and two things no verb can do."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store


class Backend(ABC):
    """One place that holds data, empty at first. The suite makes a new one for every test and closes it afterwards."""

    @abstractmethod
    async def open(self, runtime: Runtime) -> Store:
        """An opened store on this place. A second call opens a second store on the same data, as another process
        would (a store that lives inside its process returns the same one). Its clock is `runtime.now()`.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close every store that was opened and remove the data."""

    @abstractmethod
    async def raise_epoch(self, store: Store, epoch: int) -> None:
        """Let later claims use this epoch, as after a restore from backup."""

    @abstractmethod
    async def set_format(self, store: Store, tenant: str, job_id: str, version: int) -> None:
        """Rewrite the `format` of a stored record, as a newer release would have written it."""
