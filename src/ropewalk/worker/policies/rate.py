"""The running state of a RateLimited policy in one worker. Pure: the time is given.

A job is let in only where its rates leave room for it and for everybody let in before that has not begun. Room only
grows until somebody begins, so whoever was let in may begin whenever a slot is free, and nobody waits for a rate here:
what has no room is given back, until it would be its turn.
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
"""for so long at most a job is out of reach of workers that have room for its key"""
KEYS_TIDIED_FROM: Final = 1024
_ALL: Final = 1 << 40


class RatePolicyState:
    def __init__(self, policy: RateLimited) -> None:
        self._each = None if policy.per is None else policy.rate
        self._all = policy.rate if policy.per is None else policy.total
        self._state: RateState | None = None
        self._states: dict[str, RateState] = {}
        """by key, like all below"""
        self._promised: dict[str, RateState] = {}
        """as if those that were sent away had begun at their turns"""
        self._let_in: dict[Attempt, str | None] = {}
        """what has not begun, with its key"""
        self._let_in_of: Counter[str] = Counter()
        self._tidy_at = KEYS_TIDIED_FROM

    def room(self, now: Instant) -> int | None:
        """How many may be let in, as far as that is known without their keys. None: as many as there are."""
        return None if self._all is None else _left(self._all, self._state, now) - len(self._let_in)

    def room_at(self, now: Instant) -> Instant | None:
        """When there is room again for one; None while there is."""
        if self._all is None or (self.room(now) or 0) > 0:
            return None
        return take(self._all, self._state, now, len(self._let_in)).next_at

    def has_room(self, key: str | None, now: Instant) -> bool:
        room = self.room(now)
        if room is not None and room <= 0:
            return False
        if self._each is None or key is None:
            return True
        return _left(self._each, self._states.get(key), now) > self._let_in_of[key]

    def let_in(self, attempt: Attempt, key: str | None) -> None:
        key = None if self._each is None else key
        self._let_in[attempt] = key
        if key is not None:
            self._let_in_of[key] += 1

    def away_us(self, key: str | None, now: Instant) -> Span:
        """For how long to give back a job that has no room: until its turn, behind others that were sent away."""
        at = self.room_at(now)
        if self._each is not None and key is not None:
            at = self._promise(self._each, key, now)
        return max(1, min(AWAY_US_MAX, (at or now) - now))

    def began(self, attempt: Attempt, now: Instant) -> None:
        key = self._forget(attempt)
        if self._all is not None:
            self._state = _used(self._all, self._state, now)
        if self._each is not None and key is not None:
            self._states[key] = _used(self._each, self._states.get(key), now)
            if len(self._states) > self._tidy_at:
                self._tidy(self._each, now)

    def keep(self, here: Collection[Attempt]) -> None:
        """Whoever was let in and is not here any more left without having begun."""
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
