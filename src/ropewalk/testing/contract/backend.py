"""What the author of a store writes for the suite: how to open the store, and two changes that no verb makes."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store


class Backend(ABC):
    """A backend is one place that holds data, such as a new file or database, and is empty at first.

    The suite makes a backend for every test and closes it afterwards.
    """

    @abstractmethod
    async def open(self, runtime: Runtime) -> Store:
        """Return an opened store on this place, whose clock is `runtime.now()`.

        A second call returns a second store on the same data, as another process would open it. A store whose data
        lives only in its process returns the same store again.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close every store that `open` returned, and remove the data."""

    @abstractmethod
    async def raise_epoch(self, store: Store, epoch: int) -> None:
        """Make later claims use this epoch, as an operator does after restoring a backup."""

    @abstractmethod
    async def set_format(self, store: Store, tenant: str, job_id: str, version: int) -> None:
        """Change the `format` of the stored record of this job, as if a newer release had written it."""
