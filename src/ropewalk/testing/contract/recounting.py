"""Statistics of random lives, counted a second time from what can be seen of every job."""

from __future__ import annotations

from collections import Counter

import pytest

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import GIVES_ATTEMPT_BACK, Move, Status
from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.statistics.histogram import Histogram
from ropewalk.domain.statistics.statistics import Flow, Latency
from ropewalk.domain.time import HOUR, Span
from ropewalk.ports.store.capabilities import STATISTICS
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.history import random_step

IDS = tuple(f"job-{number}" for number in range(4))


class LifeObserver:
    """An observer reads every job after every step and counts what has happened since the step before."""

    def __init__(self) -> None:
        self._waits: dict[tuple[str, int], Span] = {}
        """How long each attempt, named by job id and fence, had waited when it started."""
        self._seen: dict[str, JobRecord] = {}
        self._ended: Counter[Status] = Counter()
        self._totals: list[Span] = []
        self._completed: list[tuple[str, int, Span]] = []
        """Each completed attempt as job id, fence, and how long it ran."""

    def look(self, job: JobRecord) -> None:
        if job.status is Status.RUNNING and job.started_at is not None:
            self._waits.setdefault((job.id, job.fence), job.started_at - job.run_at)
        before = self._seen.get(job.id)
        anew = before is None or not before.terminal or before.run < job.run
        if anew and job.terminal and job.finished_at is not None:
            self._ended[job.status] += 1
            self._totals.append(job.finished_at - job.created_at)
            if job.last_move is Move.COMPLETE and job.started_at is not None:
                self._completed.append((job.id, job.fence, job.finished_at - job.started_at))
        self._seen[job.id] = job

    async def flow(self, bench: Bench) -> Flow:
        attempts = [(each, attempt) for each in IDS for attempt in (await bench.stored_history(each)).attempts]
        counted = [(each, attempt) for each, attempt in attempts if attempt.move not in GIVES_ATTEMPT_BACK]
        waits = [self._waits[each, attempt.fence] for each, attempt in counted]
        waits += [self._waits[each, fence] for each, fence, _ in self._completed]
        runs = [attempt.ended_at - attempt.started_at for _, attempt in counted]
        runs += [run for _, _, run in self._completed]
        return Flow(
            submitted=len(IDS),
            completed=self._ended[Status.COMPLETED],
            failed=self._ended[Status.FAILED],
            dead_letter=self._ended[Status.DEAD_LETTER],
            cancelled=self._ended[Status.CANCELLED],
            retried=sum(attempt.move in (Move.RETRY, Move.LOSE) for _, attempt in attempts),
            wait=_latency(waits),
            run=_latency(runs),
            total=_latency(self._totals),
        )


@needs(STATISTICS)
class CountedLivesContract(Contract):
    """The counters agree with a second count of what can be seen, whatever happens to jobs in whatever order (O4)."""

    @pytest.mark.parametrize("seed", range(8))
    async def test_the_counters_agree_with_what_can_be_seen_of_the_jobs(self, bench: Bench, seed: int) -> None:
        """O4: counts, sums, maxima and histograms, folded or not."""
        chance, observer = FakeRuntime(seed=seed), LifeObserver()
        held: dict[str, JobRecord | None] = dict.fromkeys(IDS)
        for each in IDS:
            await bench.add(id=each, max_attempts=4, max_crashes=2, ttl_us=2 * HOUR)
        for step in range(80):
            chosen = IDS[int(chance.random() * len(IDS))]
            held[chosen] = await random_step(bench, chosen, held[chosen], chance)
            for each in IDS:
                observer.look(await bench.job(each))
            if step % 20 == 19:
                await bench.store.fold_counters(None, 7)
        told = await bench.store.stats("default", StatsQuery(last_us=6 * HOUR))
        assert told.flow == await observer.flow(bench)


def _latency(spans: list[Span]) -> Latency:
    return Latency.of(Histogram.of(spans))
