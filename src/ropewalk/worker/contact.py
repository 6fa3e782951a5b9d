"""This module measures how long a worker has been in unbroken contact with its store. Only a worker with steady contact
may take back the expired leases of other workers.

An expired lease is evidence against its holder only if the holder could have renewed it. After an outage every lease
may have expired although every holder is alive. So a worker that was cut off itself waits for three seconds before it
takes back the leases of others: healthy holders ask the store again every half second, and renew their leases first. If
only one worker is cut off, it loses its leases as usual, because the others have been in contact all the time.

Contact is broken by a call that failed, by a call that took much longer than usual (it may have waited for the end of
an outage), by five seconds without any call, and by a heartbeat that stood still, because the process was frozen or its
renewals got no answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ropewalk.domain.time import SECOND, Instant
from ropewalk.ports.runtime import Runtime

STEADY_SECONDS: Final = 3.0
"""A worker needs unbroken contact for this long: several times what a healthy holder needs to connect and ask again."""
SILENT_SECONDS_MAX: Final = 5.0
"""After a longer time without a call the worker does not know whether the store was away in between."""
BEAT_SECONDS_MAX: Final = 2.0
"""The rounds of the heartbeat are half a second apart; a longer gap than this means that the process stood still."""
SLOW_SECONDS: Final = 1.0
"""A call that takes longer may have waited for an outage to end, unless calls of its kind always take so long."""

FADING: Final = 0.8
"""The usual time of a kind of call shrinks by this factor with every faster call."""


class StoreContact:
    """The contact of one worker with its store.

    The worker's loop and the thread of its heartbeat both call it without a lock: the worst result of a race is that
    leases are taken back three seconds later.
    """

    def __init__(
        self, runtime: Runtime, *, in_process: bool = False, on_back: Callable[[float], object] = lambda _: None
    ) -> None:
        """`in_process` says that the store lives in this process, so that it cannot have been away before the worker
        started. `on_back` is called with the seconds of an outage when it is over."""
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
        """How long calls of each kind usually take: about as long as the slowest of the last few."""
        self._store_ahead: float | None = None
        """The store's clock minus the monotonic clock of this process, in seconds, by the last answer with a time."""

    @property
    def steady(self) -> bool:
        """Whether this worker has been in contact for long enough to take back leases of others."""
        now = self._runtime.monotonic()
        return (
            self._since is not None
            and now - self._since >= STEADY_SECONDS
            and now - self._answered_at <= SILENT_SECONDS_MAX
            and now - self._beat_at <= BEAT_SECONDS_MAX
        )

    def take_back_until(self) -> Instant:
        """Returns the last instant, by the store's clock, at which a call that is sent now may take back leases. 0
        means that it must not take back any."""
        if self._store_ahead is None or not self.steady:
            return 0
        allowed_seconds = max([SLOW_SECONDS, *(2 * each for each in self._took_seconds.values())])
        return round((self._runtime.monotonic() + self._store_ahead + allowed_seconds) * SECOND)

    def answered(self, verb: str, asked_at: float, store_now: Instant | None = None) -> None:
        """Records that the store answered a call of this kind, which was sent at `asked_at`."""
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
        """Records that a call failed because the store is away."""
        if self._since is not None:
            self._lost_at = self._runtime.monotonic()
        self._since = None

    def beat(self) -> None:
        """Records one more round of the heartbeat."""
        now = self._runtime.monotonic()
        if now - self._beat_at > BEAT_SECONDS_MAX and self._since is not None:
            self._since = now
        self._beat_at = now
