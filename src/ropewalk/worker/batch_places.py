"""The places of a batch type with `max_batches`: so many of its batches run at once in one worker.

A batch that finds no place waits for one without a slot. This is rare, because a claim asks for no more jobs than find
a place (policies/admission.py). A batch that waits for long is given back, so that other workers get its jobs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ropewalk.ports.runtime import Runtime

if TYPE_CHECKING:
    from ropewalk.worker.batches import Gathering

WAIT_SECONDS: Final = 1.0
"""How long a batch waits for a place; a job waits for a slot as long."""


class BatchPlaces:
    def __init__(self, number: int, runtime: Runtime, give_back: Callable[[Gathering], object]) -> None:
        self._number = number
        self._taken: list[Gathering] = []
        self._waiting: deque[Gathering] = deque()
        self._runtime = runtime
        self._give_back = give_back
        self._closed = False

    def room(self, size: int, here: int) -> int:
        """How many more jobs find a place in batches of `size`, where `here` of the type are in the worker already."""
        without_place = here - sum(len(each.attempts) for each in self._taken)
        return max(0, (self._number - len(self._taken)) * size - without_place)

    def take(self, batch: Gathering) -> bool:
        """A place for the batch; without one it waits, and then False."""
        if len(self._taken) < self._number:
            self._taken.append(batch)
            return True
        self._waiting.append(batch)
        batch.timer = self._runtime.after(WAIT_SECONDS, lambda: self._drop(batch))
        if self._closed:
            self._drop(batch)
        return False

    def leave(self, batch: Gathering) -> Gathering | None:
        """The batch has ended. Answers the one that takes over its place: it has waited longest."""
        self._taken.remove(batch)
        if not self._waiting:
            return None
        successor = self._waiting.popleft()
        successor.stop_timer()
        self._taken.append(successor)
        return successor

    def close(self) -> None:
        """Batches that have no place by now will not get one."""
        self._closed = True
        for batch in tuple(self._waiting):
            self._drop(batch)

    def _drop(self, batch: Gathering) -> None:
        batch.stop_timer()
        self._waiting.remove(batch)
        self._give_back(batch)
