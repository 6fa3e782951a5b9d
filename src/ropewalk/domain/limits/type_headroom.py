"""How many jobs of each type one worker has room for in a claim. Its own business: limits of the fleet are
headroom.py."""

from __future__ import annotations

from collections.abc import Mapping


class Room:
    """What is left while a claim gives out jobs. A type that is not named has room."""

    def __init__(self, most: Mapping[str, int]) -> None:
        self._left = dict(most)

    def admits(self, job_type: str) -> bool:
        return self._left.get(job_type, 1) > 0

    def most(self, job_type: str, wanted: int) -> int:
        """Of so many wanted those there is room for, but at least one."""
        return max(1, min(wanted, self._left.get(job_type, wanted)))

    def give(self, job_type: str) -> None:
        if job_type in self._left:
            self._left[job_type] -= 1
