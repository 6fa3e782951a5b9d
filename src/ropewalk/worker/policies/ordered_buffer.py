"""A buffer from which jobs start in the order of a policy.

The order is fixed with each claim. The claim informs the store which jobs may start until the next claim, and which
jobs with an earlier ticket go on waiting (`unstarted`). Only the first ones leave the buffer, so a worker that dies
uses up no attempt of a job that others overtook. The jobs that a claim brings are put in order by the next claim,
except if slots would stay free until then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.worker.attempt import Attempt
from ropewalk.worker.buffer import Buffer, Permit
from ropewalk.worker.policies.order import Arrangement


class OrderedBuffer(Buffer):
    """A buffer with an order. `_waiting` contains the jobs that may start, in their order; `_behind` contains the
    rest."""

    def __init__(self, arrangement: Arrangement) -> None:
        super().__init__()
        self._arrangement = arrangement
        self._behind: list[Attempt] = []
        self._chosen: list[Attempt] = []
        """These jobs may start as soon as the store has answered the claim that names them."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._behind)

    def __iter__(self) -> Iterator[Attempt]:
        yield from self._waiting
        yield from self._behind

    @property
    def oldest(self) -> Attempt | None:
        return max(self, key=Attempt.since_claim, default=None)

    @property
    def blocked(self) -> bool:
        startable = self._arrangement.may_start(_jobs(self._behind), self._on_its_way())
        return len(self._runners) > len(self._waiting) and next(startable, None) is not None

    def permit(self, number: int, last_ticket: int) -> Permit:
        """Chooses the next `number` jobs in order. All others may not start any more, and the permit names those of
        them that the store would count as started."""
        in_line = {each.job.seq: each for each in self if each.job.ticket}  # A job that skips the queue has ticket 0.
        running = [each.job for each in self.running]
        order = [in_line[job.seq] for job in self._arrangement.arrange(_jobs(in_line.values()), running)]
        startable = list(islice(self._arrangement.may_start(_jobs(order), running), number))
        chosen = [in_line[job.seq] for job in startable]
        others = [each for each in order if each not in set(chosen)]
        before = set(self._waiting)
        skipping = [each for each in self._waiting if not each.job.ticket]
        self._waiting = deque([*skipping, *(each for each in chosen if each in before)])
        self._behind = [*(each for each in chosen if each not in before), *others]
        self._chosen = chosen
        upto = max((each.job.ticket for each in chosen), default=0)
        if len(chosen) < number:
            upto = last_ticket + number - len(chosen)
        upto = max(upto, self._permitted)
        return Permit(upto, tuple(sorted(each.job.ticket for each in others if each.job.ticket <= upto)))

    def put(self, attempts: Iterable[Attempt], *, started_upto: int) -> None:
        self._permitted = max(self._permitted, started_upto)
        here, chosen = set(self), set(self._chosen)
        # Jobs that came meanwhile and count as started wait, too: their slot has ended, or they skipped the queue.
        started = [each for each in self._waiting if each not in chosen]
        self._waiting = deque([*started, *(each for each in self._chosen if each in here)])
        self._behind = [each for each in self._behind if each not in chosen]
        self._chosen = []
        self._take_in(attempts)
        self._hand_out()

    def take_overtaken(self, seconds: float) -> list[Attempt]:
        overtaken = [each for each in self._behind if each.since_claim() > seconds]
        self._behind = [each for each in self._behind if each not in overtaken]
        return overtaken

    def take_all(self) -> list[Attempt]:
        taken = [*super().take_all(), *self._behind]
        self._behind, self._chosen = [], []
        return taken

    def _take_in(self, attempts: Iterable[Attempt]) -> None:
        """Adds the jobs of a claim. The store already counts some of them as started; if one of these has to wait, the
        next claim names it as unstarted."""
        new = {each.job.seq: each for each in attempts}
        started = [each.job for each in new.values() if each.job.ticket <= self._permitted]
        for job in self._arrangement.may_start(started, self._on_its_way()):
            self._waiting.append(new.pop(job.seq))
        self._behind += new.values()

    def _on_its_way(self) -> list[JobRecord]:
        """Returns the jobs that run or may start."""
        return _jobs([*self.running, *self._waiting])

    def _leave(self) -> Attempt:
        """Takes the next job out of the buffer, and informs the order of it."""
        attempt = super()._leave()
        self._arrangement.left(attempt.job)
        return attempt


def _jobs(attempts: Iterable[Attempt]) -> list[JobRecord]:
    return [each.job for each in attempts]
