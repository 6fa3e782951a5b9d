"""The running state of a RateLimited policy in one worker. It is pure: the caller passes the time.

A job is let in only if its rates have room for it and for all jobs that were let in before and have not begun. The room
can only grow until one of them begins. So a job that was let in may begin whenever a slot is free, and no job waits in
this worker for a rate: a job without room is given back until the time of its turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

from ropewalk.definitions.policies import RateLimited
from ropewalk.domain.limits.rate import Rate, RateState, idle_at, take
from ropewalk.domain.time import SECOND, Instant, Span
from ropewalk.worker.attempt import Attempt

AWAY_US_MAX: Final[Span] = 10 * SECOND
"""A job is given back for this long at most, because another worker may have room for its key before."""
KEYS_TIDIED_FROM: Final = 1024
"""Keys that are idle are forgotten when there are more than this many."""
_ALL: Final = 1 << 40
"""This is more than any rate allows: asking for so many starts shows how many are left."""


class RatePolicyState:
    """The starts of jobs that count against one rate policy."""

    def __init__(self, policy: RateLimited) -> None:
        self.policy = policy
        self._each = None if policy.per is None else policy.rate
        self._all = policy.rate if policy.per is None else policy.total
        self._state: RateState | None = None
        self._states: dict[str, RateState] = {}
        """The state of the rate of each key."""
        self._promised: dict[str, RateState] = {}
        """The state of each key as if the jobs that were given back began at the times of their turns."""
        self._let_in: dict[Attempt, str | None] = {}
        """The attempts that were let in and have not begun, with their keys."""
        self._let_in_of: Counter[str] = Counter()
        """The number of these attempts for each key."""
        self._tidy_at = KEYS_TIDIED_FROM

    def room(self, now: Instant) -> int | None:
        """Returns how many more jobs may be let in, whatever their keys; None means that there is no such bound."""
        return None if self._all is None else _left(self._all, self._state, now) - len(self._let_in)

    def room_at(self, now: Instant) -> Instant | None:
        """Returns when there is room again for one job; None if there is room now."""
        if self._all is None or (self.room(now) or 0) > 0:
            return None
        return take(self._all, self._state, now, len(self._let_in)).next_at

    def has_room(self, key: str | None, now: Instant) -> bool:
        """Whether a job with this key may be let in."""
        room = self.room(now)
        if room is not None and room <= 0:
            return False
        if self._each is None or key is None:
            return True
        return _left(self._each, self._states.get(key), now) > self._let_in_of[key]

    def let_in(self, attempt: Attempt, key: str | None) -> None:
        """Records that a job may begin whenever a slot is free."""
        key = None if self._each is None else key
        self._let_in[attempt] = key
        if key is not None:
            self._let_in_of[key] += 1

    def away_us(self, key: str | None, now: Instant) -> Span:
        """Returns for how long to give back a job without room: until its turn, behind those that were given back
        before."""
        at = self.room_at(now)
        if self._each is not None and key is not None:
            at = self._promise(self._each, key, now)
        return max(1, min(AWAY_US_MAX, (at or now) - now))

    def began(self, attempt: Attempt, now: Instant) -> None:
        """Counts the start of a job that was let in."""
        key = self._forget(attempt)
        if self._all is not None:
            self._state = _used(self._all, self._state, now)
        if self._each is not None and key is not None:
            self._states[key] = _used(self._each, self._states.get(key), now)
            if len(self._states) > self._tidy_at:
                self._tidy(self._each, now)

    def keep(self, here: Collection[Attempt]) -> None:
        """Forgets the jobs that were let in and are not in this worker any more: they left without having begun."""
        for attempt in [each for each in self._let_in if each not in here]:
            self._forget(attempt)

    def _promise(self, rate: Rate, key: str, now: Instant) -> Instant:
        state = self._promised.get(key)
        if state is None or state.at <= now:
            state = take(rate, self._states.get(key), now, self._let_in_of[key]).state
        taken = take(rate, state, at := max(now, state.at), 1)
        if taken.next_at is not None and not taken.granted:
            taken = take(rate, taken.state, at := taken.next_at, 1)
        self._promised[key] = taken.state
        return at

    def _forget(self, attempt: Attempt) -> str | None:
        key = self._let_in.pop(attempt)
        if key is not None:
            self._let_in_of[key] -= 1
            if not self._let_in_of[key]:
                del self._let_in_of[key]
        return key

    def _tidy(self, rate: Rate, now: Instant) -> None:
        self._states = {key: state for key, state in self._states.items() if idle_at(rate, state) > now}
        self._promised = {key: state for key, state in self._promised.items() if state.at > now}
        self._tidy_at = max(KEYS_TIDIED_FROM, 2 * len(self._states))


def _left(rate: Rate, state: RateState | None, now: Instant) -> int:
    return take(rate, state, now, _ALL).granted


def _used(rate: Rate, state: RateState | None, now: Instant) -> RateState:
    taken = take(rate, state, now, 1)
    assert taken.granted, f"{rate} was exceeded: a job began that was not let in"
    return taken.state
