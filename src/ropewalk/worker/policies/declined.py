"""Jobs this worker declined, so that its claims pass over them for a while: one second, and twice as long each time.

They are given back without a delay and keep their place, so that any other worker gets them at once: a delay would keep
them from everybody, and every worker that declines would push them further away from the one that accepts. Pure.
"""

from __future__ import annotations

from typing import Final

FIRST_SECONDS: Final = 1.0
SECONDS_MAX: Final = 60.0
REMEMBERED_MAX: Final = 1000
"""every claim looks past them"""


class Declined:
    def __init__(self) -> None:
        self._until: dict[int, tuple[float, float]] = {}
        """seq → (until when it is passed over, how long that is)"""

    def add(self, seq: int, now: float) -> bool:
        """False: there are too many to remember one more."""
        if seq not in self._until and len(self._until) >= REMEMBERED_MAX:
            # Until twice its time it is known how long it was; then it is new.
            self._until = {each: known for each, known in self._until.items() if known[0] + known[1] > now}
            if len(self._until) >= REMEMBERED_MAX:
                return False
        _, before = self._until.get(seq, (0.0, FIRST_SECONDS / 2))
        span = min(SECONDS_MAX, 2 * before)
        self._until[seq] = (now + span, span)
        return True

    def passing(self, now: float) -> frozenset[int]:
        return frozenset(seq for seq, (until, _) in self._until.items() if until > now)
