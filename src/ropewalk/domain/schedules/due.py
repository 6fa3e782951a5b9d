"""Which fires of a schedule are due, and what becomes of those that were missed.

A fire that is at most a minute late is on time, because schedulers look about every second, and a deployment takes a
moment. Older fires were missed, because no scheduler ran. The schedule says what becomes of them:

- With `skip` they are left out.
- With `once` only the newest of them fires, unless another fire is on time just now.
- With `all` every one of them fires, but no more than the newest hundred: a pause of a year must not cause a flood.
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
"""A fire that is late by no more than this is on time."""
FIRES_MAX: Final = 100
"""No more fires than this are due at once, however many were missed."""


class Due(Struct, frozen=True):
    """The fires that a schedule owes now."""

    fires: tuple[Instant, ...]
    """The fires whose jobs are to be submitted, oldest first."""
    next_fire: Instant | None
    """The next fire, which is to be stored in the same transaction."""


def due(schedule: Schedule, now: Instant, functions: Functions = NO_FUNCTIONS) -> Due:
    """Returns the fires of a schedule that are due, and its next fire.

    A paused schedule goes on from fire to fire, and none of them is due. A schedule whose function this process does
    not have stays as it is. If the tz database of this machine does not have its zone, this raises InvalidInput.
    """
    first = schedule.next_fire
    times = following(schedule.plan.timing, functions)
    if first is None or first > now or times is None:
        return Due((), first)
    if schedule.paused:
        return Due((), times(now))
    missed = schedule.plan.missed
    if isinstance(schedule.plan.timing, ByFunction):
        return _due_by_function(schedule.plan.timing.function, times, first, now, missed)
    return Due(_owed(times, first, now, missed), times(now))


def advance(schedule: Schedule, taken: Due) -> Schedule:
    """Returns the schedule as it is after the jobs of its due fires were submitted."""
    last_fire = taken.fires[-1] if taken.fires else schedule.last_fire
    return structs.replace(schedule, next_fire=taken.next_fire, last_fire=last_fire)


def upcoming(schedule: Schedule, count: int, functions: Functions = NO_FUNCTIONS) -> list[Instant]:
    """Returns up to `count` fires to come, beginning with the stored one. If only another process has the function of
    the schedule, the stored fire is the only one."""
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
    """Returns up to `limit` fires from `since` to `now`, the newest ones, without computing all of them."""

    def up_to(count: int, after: Instant) -> tuple[Instant, ...]:
        return _walk(times, times(after), now, count)[0]

    fires = up_to(limit + 1, since - 1)
    if len(fires) <= limit:
        return fires
    # The later the instant, the fewer fires follow it. The latest instant that `limit` fires follow is just before the
    # first one that fewer fires follow.
    instants = range(since, now)
    too_late = bisect_left(instants, x=True, key=lambda after: len(up_to(limit, after)) < limit)
    return up_to(limit, instants.start + too_late - 1)


def _due_by_function(name: str, times: Following, first: Instant, now: Instant, missed: Missed) -> Due:
    """Returns what is due by a registered function. It is called from fire to fire, because each answer may depend on
    the one before; after too many fires it is called with the present instant."""
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
    """Returns the fire that follows another one. Raises InvalidInput if the two are too close together."""
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
    """Returns up to `limit` fires from `fire` up to now, and the one that follows them."""
    fires: list[Instant] = []
    while fire is not None and fire <= now and len(fires) < limit:
        fires.append(fire)
        fire = times(fire)
    return tuple(fires), fire
