"""Which jobs may not wait in the buffer of a worker, and how many suspects may run together on one worker.

A suspect is a job that was running when a worker died. One of the suspects may have killed the worker, and if it kills
another one, every suspect beside it has one more crash. Therefore as many suspects as there are slots may run together
after their first crash, and half as many after each further crash. A suspect that the next crash would end must be the
only suspect on its worker, so that no other suspect can end its life.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.retry import is_last
from ropewalk.domain.jobs.states import Status

UNBOUNDED: Final = 1 << 30
"""This stands for a number of suspects or slots without a bound."""


class Suspects(Struct, frozen=True):
    """The suspects among the jobs that a worker has leased."""

    number: int = 0
    """The number of these suspects."""
    together_max: int = UNBOUNDED
    """These suspects allow at most this many suspects on their worker, themselves included."""
    slots: int = UNBOUNDED
    """The worker can run this many jobs at once."""

    @classmethod
    def of(cls, jobs: Iterable[JobRecord], slots: int) -> Suspects:
        bounds = [together_max(job, slots) for job in jobs]
        return cls(len(bounds), min(bounds, default=UNBOUNDED), slots)


def must_start_at_once(job: JobRecord) -> bool:
    """Whether this ready job may only be given to a free slot, and not to the buffer of a worker.

    When a worker dies, the jobs in its buffer may be counted as started. A last attempt would then be over without
    having run, and a suspect would have one more crash, which it did not cause.
    """
    return job.suspect or is_last(job.attempt + 1, job.max_attempts)


def together_max(job: JobRecord, slots: int) -> int:
    """Returns how many suspects may be on one worker with so many slots if this one is among them.

    A waiting job is judged as if its next attempt had begun.
    """
    starts = job.attempt + (job.status is Status.WAITING)
    if is_last(starts, job.max_attempts) or job.crashes + 1 >= job.max_crashes:
        return 1
    return max(1, slots >> (job.crashes - 1))


class Quarantine:
    """Decides which suspects a claim may add to those that its worker has leased.

    Suspects keep their order: if one is refused, all suspects behind it are refused, too, because it might otherwise
    wait for ever.
    """

    def __init__(self, suspects: Suspects) -> None:
        self._number = suspects.number
        self._together_max = suspects.together_max
        self._slots = suspects.slots
        self.closed = suspects.number >= suspects.together_max
        """Whether this claim gives out no further suspect."""

    def admits(self, job: JobRecord) -> bool:
        """Whether this suspect may be given out. If not, the quarantine is closed for all suspects behind it."""
        if not self.closed and self._number >= min(self._together_max, together_max(job, self._slots)):
            self.closed = True
        return not self.closed

    def give(self, job: JobRecord) -> None:
        """Counts a suspect that was given out."""
        self._number += 1
        self._together_max = min(self._together_max, together_max(job, self._slots))
        self.closed = self._number >= self._together_max
