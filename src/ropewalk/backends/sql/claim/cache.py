"""The claim cache contains what the claims of one store remember for the next ones, so that the cost of a claim depends
on the number of jobs it gives out and on little else. Everything in it may be forgotten at any time.

Expired leases. They are searched for when the first known lease expires, and once a second because other processes
grant leases, too; not with every claim.

Looks. A look is the search for all sublanes with ready jobs. It is expensive while a transaction is open anywhere on a
server, because the database then keeps the rows of all jobs given out since, and a look from the start has to pass them
all. Only in this case the claims trust the last look for a while and go on where the last claim stopped. A job that
should overtake others may then be seen late: by a second, or by ten times the duration of a look.

Last attempts. Jobs are read as a whole. If the last claim ended at a job that needs a free slot, most of what the next
one reads might be in vain; so that one first reads only as many jobs as there are slots.

Limit keys. A lane may have very many sublanes of limit keys. A look takes some of them, and the next look goes on
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
"""Such a function reads sublanes of limit keys: those behind the first number and before the second, up to a count."""


class SingleSublane(NamedTuple):
    """The only sublane with ready jobs at the last look, if no rule kept any of its jobs from being given out."""

    sublane: int
    lane: LaneName
    control: int
    """At this value of the control counter there was no limit and the queue was not paused."""


Rank: TypeAlias = tuple[int, Instant, int]
"""The place of a job in its sublane: (prio_key, time_key, seq)."""

BEFORE_ALL: Final[Rank] = (-(1 << 63), -(1 << 63), -(1 << 63))
"""The rank before all jobs of a sublane."""
KEYED_FROM: Final = 2 * KEYS_MAX
"""The sublanes of limit keys have numbers from this one on."""
SWEEP_EVERY_US: Final[Span] = SECOND
"""Expired leases are searched for at least this often."""
EXPENSIVE_US: Final[Span] = 500
"""A look that takes longer is expensive: this is five times its duration without old rows in the way."""
TRUSTED_SECONDS_MIN: Final = 1.0
"""An expensive look is trusted for at least this long."""
SHARE_OF_LOOKING: Final = 0.1
"""An expensive look is trusted for so long that looks take this share of the time."""


class ClaimCache:
    """What the claims of one store remember for the next ones.

    One claim uses it at a time, except that a claim may be answered on an event loop while a thread begins the next
    one. Neither can make the other miss a job for longer than a look is trusted.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._sweep_from: Instant = 0
        self._sweep_by: Instant = 0
        self._sublanes: Sequence[int] | None = None
        self._reached: dict[int, Rank] = {}
        self._trusted_until = 0.0
        self.was_held_up = False
        """Whether the last claim ended at a job that found no free slot."""
        self.single: SingleSublane | None = None
        """The single sublane of the last claim, for the fast path of the next one; None if there were others."""
        self._behind: dict[int, int] = {}
        """For each lane, the sublane of a limit key behind which the next look goes on."""

    def sweep_due(self, now: Instant) -> bool:
        """Whether this claim should search for expired leases. It should, too, if the clock was set back."""
        begin, end = self.no_sweep_between
        return not begin <= now < end

    @property
    def no_sweep_between(self) -> tuple[Instant, Instant]:
        """From the first of these instants until just before the second, claims need not search for expired leases."""
        return self._sweep_from, self._sweep_by

    def swept(self, now: Instant, earliest_expiry: Instant | None) -> None:
        """Records that a claim searched for expired leases, and when the first of the remaining leases expires."""
        self._sweep_from, self._sweep_by = now, now + SWEEP_EVERY_US
        if earliest_expiry is not None:
            self.granted(earliest_expiry)

    def granted(self, expires_at: Instant) -> None:
        """Records that a lease was granted that expires at this instant."""
        self._sweep_by = min(self._sweep_by, expires_at)

    def readable(self, request: ClaimRequest) -> int:
        """Returns how many jobs a claim should read at first, because it will probably give out as many."""
        held_up, self.was_held_up = self.was_held_up, False
        return max(1, request.slots) if held_up else request.limit

    def held_up(self) -> None:
        """Records that this claim ended at a job that must start at once and for which there was no free slot."""
        self.was_held_up = True

    @property
    def sublanes(self) -> Sequence[int] | None:
        """The sublanes that had ready jobs at the last look; None if it is time for another look."""
        return self._sublanes if self._monotonic() < self._trusted_until else None

    def looked(self, sublanes: Sequence[int], took_us: Span) -> None:
        """Records the sublanes with ready jobs. They are remembered only if the look was expensive for the store."""
        self.look_again()
        if took_us > EXPENSIVE_US:
            self._sublanes = sublanes
            trusted_seconds = max(TRUSTED_SECONDS_MIN, took_us / SECOND / SHARE_OF_LOOKING)
            self._trusted_until = self._monotonic() + trusted_seconds

    def look_again(self) -> None:
        """Forgets the last look, because jobs came back that come before those that were given out last."""
        self._sublanes, self._trusted_until = None, 0.0
        self._reached.clear()

    def keys_of(self, lane: int, most: int, read: ReadKeys) -> tuple[Sequence[int], bool]:
        """Returns some of the sublanes of a lane's limit keys, from the place where the last look ended, and whether
        there may be others."""
        first = lane * KEYED_FROM
        behind = self._behind.pop(lane, first)
        sublanes = read(behind, first + KEYED_FROM, most)
        if len(sublanes) == most:
            self._behind[lane] = sublanes[-1]
        return sublanes, len(sublanes) == most or behind > first

    @property
    def remembers(self) -> bool:
        """Whether the cache records the places that claims reach; it does so while a look is trusted."""
        return self._sublanes is not None

    def start_of(self, sublane: int) -> Rank:
        """Returns the rank in a sublane up to which all jobs have been given out, as far as this store knows."""
        return self._reached.get(sublane, BEFORE_ALL)

    def reached(self, sublane: int, rank: Rank) -> None:
        """Records that all jobs of a sublane up to this rank have been given out."""
        if self._sublanes is not None:
            self._reached[sublane] = rank
