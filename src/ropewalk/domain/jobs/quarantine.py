"""Which jobs may not wait in the buffer of a worker, and how many suspects may run together on one worker.

A suspect is a job that was running when a worker died. One of them may be what killed it, and each further death costs
all suspects beside it another crash. So they all may run again at once after their first crash, half as many together
after each further one, and a suspect for which the next crash would be the end is the only one of its worker: when one
suspect kills that worker, no other ends with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.retry import is_last
from ropewalk.domain.jobs.states import Status

UNBOUNDED: Final = 1 << 30


class Suspects(Struct, frozen=True):
    """The suspects that a worker holds."""

    number: int = 0
    """How many they are."""
    company: int = UNBOUNDED
    """How many there may be together, because of those that are here."""
    slots: int = UNBOUNDED
    """How many jobs the worker can run at once."""

    @classmethod
    def of(cls, jobs: Iterable[JobRecord], slots: int) -> Suspects:
        companies = [company(job, slots) for job in jobs]
        return cls(len(companies), min(companies, default=UNBOUNDED), slots)


def must_start_at_once(job: JobRecord) -> bool:
    """Whether this ready job may only be given to a free slot, and not to the buffer of a worker.

    When a worker dies, what it had in its buffer may be counted as started: then a last attempt is over without having
    run, and a suspect has one more crash to its name, which it did not cause.
    """
    return job.suspect or is_last(job.attempt + 1, job.max_attempts)


def company(job: JobRecord, slots: int) -> int:
    """How many suspects may run together with this one on a worker with so many slots, itself included.

    A waiting job is seen as if it had started.
    """
    starts = job.attempt + (job.status is Status.WAITING)
    if is_last(starts, job.max_attempts) or job.crashes + 1 >= job.max_crashes:
        return 1
    return max(1, slots >> (job.crashes - 1))


class Quarantine:
    """Which suspects a claim may add to those that its worker holds.

    They keep their order: where one may not join, none of those behind it is given either, or it might wait for ever.
    """

    def __init__(self, held: Suspects) -> None:
        self._number = held.number
        self._company = held.company
        self._slots = held.slots
        self.closed = held.number >= held.company
        """Whether no suspect can be given any more."""

    def admits(self, job: JobRecord) -> bool:
        """Whether this suspect may join. If it may not, those behind it may not either."""
        if not self.closed and self._number >= min(self._company, company(job, self._slots)):
            self.closed = True
        return not self.closed

    def give(self, job: JobRecord) -> None:
        """This suspect joins."""
        self._number += 1
        self._company = min(self._company, company(job, self._slots))
        self.closed = self._number >= self._company
