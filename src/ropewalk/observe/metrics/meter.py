"""The meter counts what happens to jobs, a batch at a time, after each commit. It knows which change of a job counts
for which metric; values.py keeps the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ropewalk.domain.jobs.record import JobRecord, NewJob
from ropewalk.domain.jobs.states import TERMINAL, Move, Status
from ropewalk.domain.jobs.transition import AttemptTiming
from ropewalk.domain.time import SECOND, Instant
from ropewalk.observe.metrics import catalogue
from ropewalk.observe.metrics.catalogue import Metric
from ropewalk.observe.metrics.values import MetricValues

if TYPE_CHECKING:
    from ropewalk.observe.publish import Change

T = TypeVar("T")

_OF_MOVE: Final[Mapping[Move, Metric]] = {
    Move.COMPLETE: catalogue.COMPLETED,
    Move.SKIP: catalogue.COMPLETED,
    Move.FAIL: catalogue.FAILED,
    Move.DOOM: catalogue.FAILED,
    Move.RETRY: catalogue.RETRIED,
    Move.BURY: catalogue.DEAD_LETTERED,
    Move.SET_ASIDE: catalogue.DEAD_LETTERED,
    Move.CANCEL: catalogue.CANCELLED,
    Move.EXPIRE: catalogue.EXPIRED,
    Move.LOSE: catalogue.RECLAIMED,
}
_GIVEN_BACK: Final[Mapping[Move, str]] = {
    Move.DEFER: "deferred",
    Move.SUSPEND: "suspended",
    Move.RELEASE: "released",
}
_COMPLETE: Final = Move.COMPLETE


class SettledAttempt(Protocol):
    """What the meter reads of an attempt that the store has settled."""

    @property
    def job(self) -> JobRecord: ...

    @property
    def timing(self) -> AttemptTiming | None: ...

    def now(self) -> Instant: ...


class Meter:
    """Each of its methods records one kind of thing that happened."""

    def __init__(self, values: MetricValues) -> None:
        self._values = values
        self._begun: list[str] = []
        self.began: Callable[[str], None] = self._begun.append
        """This is called with the type of a job whose handler begins. The starts are counted with the next batch, or
        when the metrics are read."""

    def queued(self, jobs: Iterable[NewJob]) -> None:
        """Counts jobs that are new to the store."""
        for job_type, count in Counter([new.type for new in jobs]).items():
            self._values.add(catalogue.ENQUEUED, (job_type,), count)

    def moved(self, changes: Sequence[Change]) -> None:
        """Counts the changes of jobs, whoever caused them."""
        for job_type, members in _by_type(changes, [each.job.type for each in changes]).items():
            used = [each.job.attempt for each in members if each.move is _COMPLETE]
            if used:
                self._values.add(catalogue.COMPLETED, (job_type,), len(used))
            if len(used) < len(members):
                others = [each for each in members if each.move is not _COMPLETE]
                self._count_others(job_type, others)
                used += [each.job.attempt for each in others if each.job.status in TERMINAL]
            self._values.observe(catalogue.ATTEMPTS_USED, (job_type,), used)

    def settled(self, attempts: Sequence[SettledAttempt]) -> None:
        """Records how long the attempts took that the store settled in one commit."""
        if not attempts:
            return
        values, now = self._values, attempts[-1].now()
        values.observe(catalogue.SETTLED, (), [len(attempts)])
        self.count_begun()
        for job_type, members in _by_type(attempts, [each.job.type for each in attempts]).items():
            timings = [each.timing for each in members if each.timing is not None]
            # Attempts that were given back before they began have no timing.
            jobs = [each.job for each in members if each.timing is not None]
            waited = [
                (job.started_at or job.run_at) - job.run_at + each.waited_us
                for job, each in zip(jobs, timings, strict=True)
            ]
            values.observe(catalogue.WAIT, (job_type,), waited, per_unit=SECOND)
            values.observe(catalogue.RUN, (job_type,), [each.ran_us for each in timings], per_unit=SECOND)
            values.observe(catalogue.TOTAL, (job_type,), [now - job.created_at for job in jobs], per_unit=SECOND)

    def count_begun(self) -> None:
        """Counts the handlers that have begun since the last call."""
        begun = self._begun[:]
        del self._begun[: len(begun)]  # Starts that another thread added meanwhile stay.
        if not begun:
            return
        # All are nearly always of one type, and checking that takes a tenth of the time of a Counter.
        all_the_same = begun.count(begun[0]) == len(begun)
        for job_type, count in ({begun[0]: len(begun)} if all_the_same else Counter(begun)).items():
            self._values.add(catalogue.STARTED, (job_type,), count)

    def fired(self, schedule: str) -> None:
        self._values.add(catalogue.FIRED, (schedule,), 1)

    def claimed(self, jobs: int) -> None:
        self._values.observe(catalogue.CLAIMED, (), [jobs])

    def renewed(self, leases: int) -> None:
        self._values.add(catalogue.RENEWED, (), leases)

    def refused(self) -> None:
        self._values.add(catalogue.STALE, (), 1)

    def lagged(self, seconds: float) -> None:
        self._values.observe(catalogue.LAG, (), [max(0.0, seconds)])

    def restarted(self, loop: str) -> None:
        self._values.add(catalogue.RESTARTS, (loop,), 1)

    def erred(self, phase: str) -> None:
        self._values.add(catalogue.ERRORS, (phase,), 1)

    def _count_others(self, job_type: str, changes: Sequence[Change]) -> None:
        for move, count in Counter(each.move for each in changes).items():
            if move is Move.END:
                completed = sum(each.move is move and each.job.status is Status.COMPLETED for each in changes)
                self._values.add(catalogue.COMPLETED, (job_type,), completed)
                self._values.add(catalogue.FAILED, (job_type,), count - completed)
            elif move in _GIVEN_BACK:
                self._values.add(catalogue.GIVEN_BACK, (job_type, _GIVEN_BACK[move]), count)
            else:
                self._values.add(_OF_MOVE[move], (job_type,), count)


def _by_type(members: Sequence[T], types: Sequence[str]) -> Mapping[str, Sequence[T]]:
    """Groups the members by their types, which `types` contains in the same order."""
    if types and types.count(types[0]) == len(types):  # This is nearly always the case, and it runs for every job.
        return {types[0]: members}
    by_type: dict[str, list[T]] = {}
    for each, job_type in zip(members, types, strict=True):
        by_type.setdefault(job_type, []).append(each)
    return by_type
