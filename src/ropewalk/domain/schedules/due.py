"""Which fires of a schedule are due, and what becomes of those that were missed.

A fire that is at most a minute late is on time: schedulers look every second or so, and a deployment takes a moment.
Older ones were missed, because no scheduler ran:

- `skip` leaves them out;
- `once` makes up for all of them with one, the newest, unless another is on time just now;
- `all` fires every one, but no more than the newest hundred: a year asleep is no reason for a flood.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from typing import Final

from msgspec import Struct, structs

from ropewalk.domain.schedules.schedule import (
    INTERVAL_US_MIN,
    NO_FUNCTIONS,
    ByFunction,
    Following,
    Functions,
    Missed,
    Schedule,
    following,
)
from ropewalk.domain.time import MINUTE, SECOND, Instant, Span, to_datetime
from ropewalk.errors import InvalidInput

ON_TIME_US: Final[Span] = MINUTE
FIRES_MAX: Final = 100
"""at one look, whatever was missed"""


class Due(Struct, frozen=True):
    fires: tuple[Instant, ...]
    """to enqueue, oldest first"""
    next_fire: Instant | None
    """what to store, in the same transaction and only if the stored one is still the one that was read"""


def due(schedule: Schedule, now: Instant, functions: Functions = NO_FUNCTIONS) -> Due:
    """What to enqueue now, and when to look again.

    A paused schedule goes on from fire to fire and enqueues nothing. One whose function this process does not have
    stays as it is; one whose zone this machine's tz database does not have raises `InvalidInput`.
    """
    first = schedule.next_fire
    times = following(schedule.plan.timing, functions)
    if first is None or first > now or times is None:
        return Due((), first)
    if schedule.paused:
        return Due((), times(now))
    missed = schedule.plan.missed
    if isinstance(schedule.plan.timing, ByFunction):
        return _told(schedule.plan.timing.function, times, first, now, missed)
    return Due(_owed(times, first, now, missed), times(now))


def advance(schedule: Schedule, taken: Due) -> Schedule:
    """The schedule after its due fires were enqueued."""
    last_fire = taken.fires[-1] if taken.fires else schedule.last_fire
    return structs.replace(schedule, next_fire=taken.next_fire, last_fire=last_fire)


def upcoming(schedule: Schedule, count: int, functions: Functions = NO_FUNCTIONS) -> list[Instant]:
    """Its fires to come, no more than `count`, from the stored one on; where only another process knows, that one."""
    times = following(schedule.plan.timing, functions)
    fires: list[Instant] = []
    fire = schedule.next_fire
    while fire is not None and len(fires) < count:
        fires.append(fire)
        fire = None if times is None else times(fire)
    return fires


def _owed(times: Following, first: Instant, now: Instant, missed: Missed) -> tuple[Instant, ...]:
    if missed == "all":
        return _newest(times, first, now, FIRES_MAX)
    on_time = _newest(times, max(first, now - ON_TIME_US), now, FIRES_MAX)
    return on_time or (_newest(times, first, now, 1) if missed == "once" else ())


def _newest(times: Following, since: Instant, now: Instant, limit: int) -> tuple[Instant, ...]:
    """The newest fires from `since` to `now`, no more than `limit`, without counting through all there were."""

    def up_to(count: int, after: Instant) -> tuple[Instant, ...]:
        return _walk(times, times(after), now, count)[0]

    fires = up_to(limit + 1, since - 1)
    if len(fires) <= limit:
        return fires
    # Every fire that lies behind makes one fewer ahead: just before the first instant with too few there are enough.
    instants = range(since, now)
    too_late = bisect_left(instants, x=True, key=lambda after: len(up_to(limit, after)) < limit)
    return up_to(limit, instants.start + too_late - 1)


def _told(name: str, times: Following, first: Instant, now: Instant, missed: Missed) -> Due:
    """A function is asked from fire to fire: its answers may hang on one another. After too many it skips to now."""
    fires, next_fire = _walk(partial(_checked_step, name, times), first, now, FIRES_MAX)
    if next_fire is not None and next_fire <= now:
        next_fire = times(now)
    on_time = tuple(fire for fire in fires if fire >= now - ON_TIME_US)
    match missed:
        case "all":
            return Due(fires, next_fire)
        case "once":
            return Due(on_time or fires[-1:], next_fire)
        case "skip":
            return Due(on_time, next_fire)


def _checked_step(name: str, times: Following, fire: Instant) -> Instant | None:
    """The fire that follows another one. Raises InvalidInput where the two are too close together."""
    answer = times(fire)
    if answer is not None and answer - fire < INTERVAL_US_MIN:
        raise InvalidInput(
            f"next={name!r} returned {to_datetime(answer)} as the fire after {to_datetime(fire)}: fires must be at "
            f"least {INTERVAL_US_MIN / SECOND} s apart",
            field="next",
        )
    return answer


def _walk(
    times: Following, fire: Instant | None, now: Instant, limit: int
) -> tuple[tuple[Instant, ...], Instant | None]:
    """The fires from `fire` up to now, no more than `limit`, and the one that follows them."""
    fires: list[Instant] = []
    while fire is not None and fire <= now and len(fires) < limit:
        fires.append(fire)
        fire = times(fire)
    return tuple(fires), fire
