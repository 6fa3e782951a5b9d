"""What a store's claims remember of one another, so that each costs what it gives out and little else.

Leases that ran out are looked for when the first of those known is over, and once a second for those of other
processes, not with every claim. And where looking is dear, claims go on where
the last one stopped: a transaction that is held open anywhere on a server keeps the rows of all jobs given out since,
and a look from the start has to pass them all. Then, and only then, a job that overtakes others may be seen late: by a
second, or ten times as long as a look takes.

Whole jobs are read, and where last attempts may only go into free slots, most of a claim's would be read in vain: then
the next one reads as many as there are slots, and on from there.

There may be very many sublanes of limit keys. A look at those of one lane takes some of them, and the next look goes on
behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from ropewalk.backends.sql.lanes import KEYS_MAX
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.time import SECOND, Instant, Span
from ropewalk.ports.store.claims import ClaimRequest

ReadKeys: TypeAlias = Callable[[int, int, int], Sequence[int]]
"""sublanes (behind this, before that, so many)"""


class SingleSublane(NamedTuple):
    """All that was ready, when somebody last looked, and nothing held it back."""

    sublane: int
    lane: LaneName
    control: int
    """under which there was no limit, and its queue was not paused"""


Rank: TypeAlias = tuple[int, Instant, int]
"""(prio_key, time_key, seq): where a job stands in its sublane"""

BEFORE_ALL: Final[Rank] = (-(1 << 63), -(1 << 63), -(1 << 63))
KEYED_FROM: Final = 2 * KEYS_MAX
"""sublanes of limit keys have numbers from here on"""
SWEEP_EVERY_US: Final[Span] = SECOND
DEAR_US: Final[Span] = 500
"""five times what a look takes where nothing dead is in the way"""
TRUSTED_SECONDS_MIN: Final = 1.0
SHARE_OF_LOOKING: Final = 0.1


class ClaimCache:
    """Used by one claim at a time, but for one that is answered on a loop while a thread begins the next: neither can
    make the other miss a job for longer than a look is trusted."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._sweep_from: Instant = 0
        self._sweep_by: Instant = 0
        self._sublanes: Sequence[int] | None = None
        self._reached: dict[int, Rank] = {}
        self._trusted_until = 0.0
        self.was_held_up = False
        self.single: SingleSublane | None = None
        """the sublane that was all there was to give"""
        self._behind: dict[int, int] = {}
        """by lane: where to go on among the sublanes of its keys"""

    def sweep_due(self, now: Instant) -> bool:
        """Whether to look for lost leases this time. A clock that was set back counts as time passed."""
        begin, end = self.no_sweep_between
        return not begin <= now < end

    @property
    def no_sweep_between(self) -> tuple[Instant, Instant]:
        """From the first of these instants until just before the second it is not yet time to look for lost leases."""
        return self._sweep_from, self._sweep_by

    def swept(self, now: Instant, earliest_expiry: Instant | None) -> None:
        self._sweep_from, self._sweep_by = now, now + SWEEP_EVERY_US
        if earliest_expiry is not None:
            self.granted(earliest_expiry)

    def granted(self, expires_at: Instant) -> None:
        """A lease runs until then."""
        self._sweep_by = min(self._sweep_by, expires_at)

    def readable(self, request: ClaimRequest) -> int:
        """How many jobs a claim should expect to give, and so read at first."""
        held_up, self.was_held_up = self.was_held_up, False
        return max(1, request.slots) if held_up else request.limit

    def held_up(self) -> None:
        """This claim ended at a last attempt for which there was no free slot."""
        self.was_held_up = True

    @property
    def sublanes(self) -> Sequence[int] | None:
        """Those that had ready jobs; None when it is time to look again."""
        return self._sublanes if self._monotonic() < self._trusted_until else None

    def looked(self, sublanes: Sequence[int], took_us: Span) -> None:
        """These have ready jobs; remembered where it took the store itself long to find out."""
        self.look_again()
        if took_us > DEAR_US:
            self._sublanes = sublanes
            trusted_seconds = max(TRUSTED_SECONDS_MIN, took_us / SECOND / SHARE_OF_LOOKING)
            self._trusted_until = self._monotonic() + trusted_seconds

    def look_again(self) -> None:
        """Jobs came back that stand in front of what was given out last."""
        self._sublanes, self._trusted_until = None, 0.0
        self._reached.clear()

    def keys_of(self, lane: int, most: int, read: ReadKeys) -> tuple[Sequence[int], bool]:
        """Some of the sublanes of a lane's keys, from where the last look ended; and whether there may be others."""
        first = lane * KEYED_FROM
        behind = self._behind.pop(lane, first)
        sublanes = read(behind, first + KEYED_FROM, most)
        if len(sublanes) == most:
            self._behind[lane] = sublanes[-1]
        return sublanes, len(sublanes) == most or behind > first

    @property
    def remembers(self) -> bool:
        """Whether it is worth telling what was reached."""
        return self._sublanes is not None

    def start_of(self, sublane: int) -> Rank:
        """Everything of the sublane up to there has been given out, as far as known."""
        return self._reached.get(sublane, BEFORE_ALL)

    def reached(self, sublane: int, rank: Rank) -> None:
        if self._sublanes is not None:
            self._reached[sublane] = rank
