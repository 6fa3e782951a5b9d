"""The places of a batch type with `max_batches`: a batch needs one of them to run in this worker.

A batch that finds no free place waits for one, and occupies no slot meanwhile. This is rare, because a claim asks for
no more jobs than find a place (policies/admission.py). A batch that waits too long is given back, so that other workers
get its jobs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ropewalk.ports.runtime import Runtime

if TYPE_CHECKING:
    from ropewalk.worker.batches import Gathering

WAIT_SECONDS: Final = 1.0
"""A batch waits this long for a place; a claimed job waits just as long for a slot (claimer.py)."""


class BatchPlaces:
    """The places of one batch type in one worker."""

    def __init__(self, number: int, runtime: Runtime, give_back: Callable[[Gathering], object]) -> None:
        self._number = number
        self._taken: list[Gathering] = []
        self._waiting: deque[Gathering] = deque()
        self._runtime = runtime
        self._give_back = give_back
        self._closed = False

    def room(self, size: int, here: int) -> int:
        """Returns how many more jobs find a place in batches of `size`, if the worker already has `here` jobs of the
        type."""
        without_place = here - sum(len(each.attempts) for each in self._taken)
        return max(0, (self._number - len(self._taken)) * size - without_place)

    def take(self, batch: Gathering) -> bool:
        """Gives the batch a place and returns True. If no place is free, the batch waits for one, and False is
        returned."""
        if len(self._taken) < self._number:
            self._taken.append(batch)
            return True
        self._waiting.append(batch)
        batch.timer = self._runtime.after(WAIT_SECONDS, lambda: self._drop(batch))
        if self._closed:
            self._drop(batch)
        return False

    def leave(self, batch: Gathering) -> Gathering | None:
        """Frees the place of a batch that has ended. Returns the batch that has waited longest, which gets the
        place."""
        self._taken.remove(batch)
        if not self._waiting:
            return None
        successor = self._waiting.popleft()
        successor.stop_timer()
        self._taken.append(successor)
        return successor

    def close(self) -> None:
        """Gives back the batches that have no place, and every later one that finds none, because the worker stops."""
        self._closed = True
        for batch in tuple(self._waiting):
            self._drop(batch)

    def _drop(self, batch: Gathering) -> None:
        batch.stop_timer()
        self._waiting.remove(batch)
        self._give_back(batch)
