"""Since when a worker has been in unbroken contact with its store: what it must be before it judges others.

An expired lease is evidence against its holder only if the holder could have renewed it. After an outage every lease
may be over although every holder is alive, so whoever was cut off itself waits for three seconds before it takes back
leases of others: healthy holders ask the store again every half second, and renew first. A worker that alone is cut
off loses its leases as usual, because the others have been in contact all the time.

Contact is broken by a call that failed, by one that took much longer than usual (it may have waited for the end of an
outage), by five seconds without any call, and by a heartbeat that stood still: the process was frozen, or its renewals
get no answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ropewalk.domain.time import SECOND, Instant
from ropewalk.ports.runtime import Runtime

STEADY_SECONDS: Final = 3.0
"""Unbroken contact that is needed: several times what a healthy holder takes to ask again and to connect."""
SILENT_SECONDS_MAX: Final = 5.0
"""Time between two calls after which nobody knows what happened to the store meanwhile."""
BEAT_SECONDS_MAX: Final = 2.0
"""Time between two rounds of the heartbeat, which are half a second apart, after which this process stood still."""
SLOW_SECONDS: Final = 1.0
"""A call that takes longer may have waited for something, unless the calls of its kind always take so long."""

FADING: Final = 0.8
"""What is left of how long a slow call took with each one after it."""


class StoreContact:
    """Told from the worker's loop and from the thread of its heartbeat; a race between them costs three seconds."""

    def __init__(
        self, runtime: Runtime, *, in_process: bool = False, on_back: Callable[[float], object] = lambda _: None
    ) -> None:
        """`in_process`: the store lives in this process and cannot have been away before the worker started."""
        self._runtime = runtime
        self._on_back = on_back
        now = runtime.monotonic()
        self._since: float | None = now - STEADY_SECONDS if in_process else now
        """When the unbroken contact began; None while the store does not answer."""
        self._lost_at = now
        self._answered_at = self._beat_at = now
        self._took_seconds: dict[str, float] = {}
        """How long the last call of each kind took."""
        self._usual_seconds: dict[str, float] = {}
        """How long calls of each kind may take: as long as the slowest lately."""
        self._store_ahead: float | None = None
        """The store's clock minus our monotonic one, in seconds, as the store told it last."""

    @property
    def steady(self) -> bool:
        """Whether this worker has been in contact for long enough to judge others."""
        now = self._runtime.monotonic()
        return (
            self._since is not None
            and now - self._since >= STEADY_SECONDS
            and now - self._answered_at <= SILENT_SECONDS_MAX
            and now - self._beat_at <= BEAT_SECONDS_MAX
        )

    def take_back_until(self) -> Instant:
        """The last instant, by the store's clock, at which a call that is sent now may take back leases; 0 is never."""
        if self._store_ahead is None or not self.steady:
            return 0
        allowed_seconds = max([SLOW_SECONDS, *(2 * each for each in self._took_seconds.values())])
        return round((self._runtime.monotonic() + self._store_ahead + allowed_seconds) * SECOND)

    def answered(self, verb: str, asked_at: float, store_now: Instant | None = None) -> None:
        """The store answered a call of this kind that was sent at `asked_at`."""
        now = self._runtime.monotonic()
        took = now - asked_at
        usual = self._usual_seconds.get(verb, 0.0)
        held_up = took > max(SLOW_SECONDS, 2 * usual)
        if self._since is None:
            self._since = now
            self._on_back(now - self._lost_at)
        elif held_up or asked_at - self._answered_at > SILENT_SECONDS_MAX:
            self._since = now
        self._took_seconds[verb], self._usual_seconds[verb] = took, max(took, FADING * usual)
        self._answered_at = now
        if store_now is not None:
            self._store_ahead = store_now / SECOND - now

    def failed(self) -> None:
        """A call failed because the store is away."""
        if self._since is not None:
            self._lost_at = self._runtime.monotonic()
        self._since = None

    def beat(self) -> None:
        """One more round of the heartbeat."""
        now = self._runtime.monotonic()
        if now - self._beat_at > BEAT_SECONDS_MAX and self._since is not None:
            self._since = now
        self._beat_at = now
