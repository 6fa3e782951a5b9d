"""Shortens waits that began before the store's clock was set back.

A store keeps a wait as the instant at which it is over. Most waits are relative: a delay, a retry, a sleep, a timeout.
If the clock was a day ahead when such a wait began and was then set back, the wait would last a day longer than it
should. A record whose last change lies after `now` shows that this happened, and by how much. Its waits then last as
long from now on as they were to last from that change on. An instant that a user named stays as it is.
"""

from __future__ import annotations

from typing import Final

from ropewalk.domain.jobs.flags import AT_FIXED_TIME
from ropewalk.domain.jobs.order import order_key
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import SECOND, Instant, Span

SET_BACK_MIN: Final[Span] = SECOND
"""Nothing is done about a clock that was set back by less, because waits last longer by no more than this."""


def ahead_by(written_at: Instant, now: Instant) -> Span:
    """Returns how far the clock was ahead of `now` when it said `written_at`; 0 if it was not ahead."""
    ahead_us = written_at - now
    return ahead_us if ahead_us > SET_BACK_MIN else 0


def written_ahead_from(now: Instant) -> Instant:
    """Returns the instant after which everything that was written shows a clock that was ahead of `now`."""
    return now + SET_BACK_MIN


def shorten_wait(job: JobRecord, now: Instant) -> bool:
    """Shortens the waits of a job that began while the clock was ahead. Returns False if there was nothing to change.

    This is not a move and is not recorded in the history: like the passing of time, it only changes when a job is
    ready.
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
