"""What to do about waits that were reckoned from a clock which has been set back since.

A wait is kept as the instant at which it is over. Most are relative: a delay, a retry, a sleep, a timeout. Where the
clock was a day ahead when such a wait began and was then set back, it would last for a day longer than anybody asked
for. A record that was changed later than now shows that this happened, and by how much: its waits then last from now on
as long as they were to last from that change on. An instant that a user asked for stays as it is.
"""

from __future__ import annotations

from typing import Final

from ropewalk.domain.jobs.flags import AT_FIXED_TIME
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import SECOND, Instant, Span

SET_BACK_MIN: Final[Span] = SECOND
"""A clock that was set back by less is left alone: waits last that much longer at most."""


def ahead_by(written_at: Instant, now: Instant) -> Span:
    """How far ahead the clock was when something was written that says `written_at`; 0 where it was not."""
    ahead_us = written_at - now
    return ahead_us if ahead_us > SET_BACK_MIN else 0


def written_ahead_from(now: Instant) -> Instant:
    """Whatever was written after this instant was written by a clock that was ahead of `now`."""
    return now + SET_BACK_MIN


def shorten_wait(job: JobRecord, now: Instant) -> bool:
    """Bring the waits of a job nearer that began by a clock which was ahead. False, and nothing changed, if none did.

    This is no move and has no place in the history: like the passing of time it changes when a job is ready.
    """
    ahead_us = ahead_by(job.updated_at, now) if job.status is Status.WAITING else 0
    fixed = job.flags & AT_FIXED_TIME
    if not ahead_us or (fixed and job.wake_at is None):
        return False
    if not fixed and job.run_at > now:
        job.run_at = max(now, job.run_at - ahead_us)
        job.prio_key, job.time_key = order_key(job.priority, job.run_at, job.flags)
    if job.wake_at is not None:
        job.wake_at = max(now, job.wake_at - ahead_us)
    job.updated_at = now
    return True
