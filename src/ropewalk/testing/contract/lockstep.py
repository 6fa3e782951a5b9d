"""Two stores under one clock, the in-memory model and the store under test, which get the same calls and must agree."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, cast

from ropewalk.backends.memory.store import MemoryStore
from ropewalk.domain.jobs.history import assemble
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.time import HOUR
from ropewalk.ports.store.capabilities import CompleteStore
from ropewalk.ports.store.reading import Page, QueueInfo
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract.backend import Backend
from ropewalk.testing.contract.strategies import TENANTS, TYPES

T = TypeVar("T")

MANY: Final = 10_000


def as_it_is(answer: object) -> object:
    """Return the answer unchanged: all of it must be equal."""
    return answer


class Lockstep:
    """The pair of stores: every call goes to both, and a difference between the answers fails the test."""

    def __init__(self, backend: Backend) -> None:
        self.runtime = FakeRuntime()
        self._runner = asyncio.Runner()
        self._backend = backend
        self._model = MemoryStore(self.runtime)
        self._subject = cast("CompleteStore", self._run(backend.open(self.runtime)))
        self.jobs: list[JobRecord] = []
        """The jobs that the last check found, in order of submission."""

    def close(self) -> None:
        """Close the store under test, and the event loop."""
        self._run(self._backend.close())
        self._runner.close()

    def advance(self, seconds: float) -> None:
        """Let time pass for both stores."""
        self._run(self.runtime.advance(seconds))

    def ask(self, verb: Callable[[CompleteStore], Awaitable[T]], *, compared: Callable[[T], object] = as_it_is) -> T:
        """Call a verb of both stores and return the answer; `compared` leaves out what the port does not promise."""
        expected = self._run(verb(self._model))
        answer = self._run(verb(self._subject))
        assert compared(answer) == compared(expected), f"answered {answer}\nexpected {expected}"
        return expected

    def page(self, tenant: str, wanted: Filter, *, order: Order, limit: int, cursor: str | None = None) -> Page:
        """Search both stores for one page of jobs."""
        return self.ask(lambda store: store.search(tenant, wanted, order=order, cursor=cursor, limit=limit))

    def check(self) -> None:
        """Compare all jobs, queues, workers and changed histories, and check what must always hold."""
        jobs = sorted((job for tenant in TENANTS for job in self._all_of(tenant)), key=lambda job: job.seq)
        seen = {job.seq: job for job in self.jobs}
        self.ask(lambda store: store.workers(), compared=lambda cards: sorted(cards, key=lambda card: card.id))
        self.ask(lambda store: store.backlog())
        self.ask(lambda store: store.tenants_with(Status.DEAD_LETTER, TYPES))
        for job in jobs:
            before = seen.get(job.seq)
            if before is None or before.rev != job.rev:
                self._check_life(job, before)
        _check_keys(jobs)
        self.jobs = jobs

    def _all_of(self, tenant: str) -> list[JobRecord]:
        """Compare the queues and every record of a tenant, field by field, and return the records."""
        self.ask(lambda store: store.queues(tenant), compared=_without_zeros)
        jobs = self.page(tenant, Filter(), order=Order.CREATED_ASC, limit=MANY).jobs
        self._check_counts(tenant, jobs)
        return jobs

    def _check_counts(self, tenant: str, jobs: list[JobRecord]) -> None:
        """Check that the statistics name exactly the jobs that exist."""
        standing = self.ask(lambda store: store.stats(tenant, StatsQuery(last_us=HOUR, by="both", slices=5))).standing
        now = self.runtime.now()
        found = Counter((job.queue, job.type, job.state_at(now)) for job in jobs)
        counted = {(each.queue, each.type, state): n for each in standing for state, n in each.states.items()}
        assert counted == found, f"counted {counted}, but there are {found}"

    def _check_life(self, job: JobRecord, before: JobRecord | None) -> None:
        trail = self.ask(lambda store: store.history(job.tenant, job.id))
        assert trail is not None
        history = assemble(trail.job, trail.attempts, trail.events)
        assert [entry.rev for entry in history] == list(range(1, job.rev + 1)), "safe-16: a gap in the history"
        assert 0 <= job.attempt <= (job.max_attempts or job.attempt), "safe-7: attempts over max_attempts"
        assert 0 <= job.crashes <= job.max_crashes, "safe-7: crashes over max_crashes"
        if before is not None:
            assert job.rev > before.rev, "safe-16: history is append-only"
            assert job.fence >= before.fence, "safe-4: a fence went back"
            assert job.id == before.id, "a number was used twice"

    def _run(self, answer: Awaitable[T]) -> T:
        async def wait() -> T:
            return await answer

        # Not `Runner.run`, which sets a handler of SIGINT for every call: there are tens of thousands.
        return self._runner.get_loop().run_until_complete(wait())


def _without_zeros(queues: list[QueueInfo]) -> list[object]:
    """A state without jobs may be counted as 0 or left out."""
    return [
        (queue.name, queue.paused, {state: n for state, n in queue.counts.items() if n}, queue.oldest_ready_at)
        for queue in queues
    ]


def _check_keys(jobs: list[JobRecord]) -> None:
    keys = [(job.tenant, job.type, job.idempotency_key) for job in jobs if job.idempotency_key and not job.terminal]
    assert len(keys) == len(set(keys)), "safe-12: two open jobs hold one key"
