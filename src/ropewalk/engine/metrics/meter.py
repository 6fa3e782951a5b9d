"""What the engine tells the registry: after a commit, a batch at a time. Knows jobs and moves, not how it is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

from ropewalk.domain.instants import SECOND
from ropewalk.domain.job import NewJob
from ropewalk.domain.states import TERMINAL, Move, Status
from ropewalk.engine.metrics import catalogue
from ropewalk.engine.metrics.catalogue import Metric
from ropewalk.engine.metrics.registry import Registry

if TYPE_CHECKING:
    from ropewalk.engine.announce import News
    from ropewalk.engine.attempt import Attempt

T = TypeVar("T")

_OF_MOVE: Final[Mapping[Move, Metric]] = {
    Move.COMPLETE: catalogue.COMPLETED,
    Move.SKIP: catalogue.COMPLETED,
    Move.FAIL: catalogue.FAILED,
    Move.DOOM: catalogue.FAILED,
    Move.RETRY: catalogue.RETRIED,
    Move.BURY: catalogue.DEAD_LETTERED,
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
_ONLY_COMPLETE: Final = {_COMPLETE}

_new_type = attrgetter("type")
_job_type = attrgetter("job.type")
_move = attrgetter("move")
_attempt = attrgetter("job.attempt")


class Meter:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._begun: list[str] = []
        self.began: Callable[[str], None] = self._begun.append
        """a handler of this type begins; counted with the next batch, or when somebody looks"""

    def queued(self, jobs: Iterable[NewJob]) -> None:
        for job_type, count in Counter(map(_new_type, jobs)).items():
            self._registry.add(catalogue.ENQUEUED, (job_type,), count)

    def moved(self, news: Sequence[News]) -> None:
        """What became of jobs, whoever moved them."""
        for job_type, of_type in _by_type(news).items():
            moves = set(map(_move, of_type))
            if moves == _ONLY_COMPLETE:  # nearly always, and then there is nothing to sort out
                self._registry.add(catalogue.COMPLETED, (job_type,), len(of_type))
                ended = of_type
            else:
                for move in moves:
                    self._count(job_type, move, [each for each in of_type if each.move is move])
                ended = [each for each in of_type if each.move is _COMPLETE or each.job.status in TERMINAL]
            self._registry.observe(catalogue.ATTEMPTS_USED, (job_type,), [*map(_attempt, ended)])

    def settled(self, attempts: Sequence[Attempt]) -> None:
        """Attempts of this process that the store settled in one commit: how long they took."""
        if not attempts:
            return
        registry = self._registry
        registry.observe(catalogue.SETTLED, (), [len(attempts)])
        self.count_begun()
        now = attempts[-1].now()
        ran = [each for each in attempts if each.took is not None]  # others were given back before they began
        for job_type, of_type in _by_type(ran).items():
            label, jobs = (job_type,), [each.job for each in of_type]
            waits = [(job.started_at or job.run_at) - job.run_at for job in jobs]
            registry.observe(catalogue.WAIT, label, waits, per_unit=SECOND)
            registry.observe(catalogue.RUN, label, [each.took or 0.0 for each in of_type])
            registry.observe(catalogue.TOTAL, label, [now - job.created_at for job in jobs], per_unit=SECOND)

    def count_begun(self) -> None:
        begun = self._begun[:]
        del self._begun[: len(begun)]  # what came meanwhile, from another thread, stays
        for job_type, count in Counter(begun).items():
            self._registry.add(catalogue.STARTED, (job_type,), count)

    def fired(self, schedule: str) -> None:
        self._registry.add(catalogue.FIRED, (schedule,), 1)

    def claimed(self, jobs: int) -> None:
        self._registry.observe(catalogue.CLAIMED, (), [jobs])

    def renewed(self, leases: int) -> None:
        self._registry.add(catalogue.RENEWED, (), leases)

    def refused(self) -> None:
        self._registry.add(catalogue.STALE, (), 1)

    def lagged(self, seconds: float) -> None:
        self._registry.observe(catalogue.LAG, (), [max(0.0, seconds)])

    def restarted(self, loop: str) -> None:
        self._registry.add(catalogue.RESTARTS, (loop,), 1)

    def erred(self, phase: str) -> None:
        self._registry.add(catalogue.ERRORS, (phase,), 1)

    def _count(self, job_type: str, move: Move, news: Sequence[News]) -> None:
        if move is Move.RESOLVE:
            completed = sum(each.job.status is Status.COMPLETED for each in news)
            self._registry.add(catalogue.COMPLETED, (job_type,), completed)
            self._registry.add(catalogue.FAILED, (job_type,), len(news) - completed)
        elif move in _GIVEN_BACK:
            self._registry.add(catalogue.GIVEN_BACK, (job_type, _GIVEN_BACK[move]), len(news))
        else:
            self._registry.add(_OF_MOVE[move], (job_type,), len(news))


def _by_type(many: Sequence[T]) -> dict[str, Sequence[T]]:
    """Nearly always one type: then nothing has to be sorted out."""
    types = set(map(_job_type, many))
    if len(types) == 1:
        return {types.pop(): many}
    return {name: [each for each in many if _job_type(each) == name] for name in sorted(types)}
