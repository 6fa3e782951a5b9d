"""R13, safe-8: limits against a model that remembers every start and counts by brute force.

Whatever is queued, limited, claimed and ended: no limit is ever exceeded, no room is left unused while a job waits that
could take it, and within one (queue, type, key) the first to come starts first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.limits.fleet_limit import FlowLimit, LimitKind
from ropewalk.domain.limits.rate import Rate
from ropewalk.domain.time import HOUR, Instant
from ropewalk.ports.store import capabilities
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.submission import Submission
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract import Backend
from ropewalk.testing.contract.builders import claim_request, new_job, settlement
from tests.backends.test_memory import MemoryBackend
from tests.backends.test_sqlite import SqliteBackend
from tests.budget import BUDGET
from tests.domain.limits.test_rate import allowed

QUEUES, TYPES, KEYS = ("q", "r"), ("a", "b"), (None, "k", "c:1", "c:2")
LIMITS: tuple[tuple[LimitKind, str], ...] = (
    ("queue", "q"),
    ("type", "a"),
    ("key", "k"),
    ("key", "c:*"),
    ("key", "c:1"),
)

rates = st.builds(Rate, st.integers(1, 3), st.sampled_from((2.0, 5.0)), st.sampled_from(("sliding", "fixed")))
limits = st.builds(
    lambda what, concurrency, rate: FlowLimit(
        tenant="default", kind=what[0], name=what[1], concurrency=concurrency, rate=rate
    ),
    st.sampled_from(LIMITS),
    st.none() | st.integers(1, 3),
    st.none() | rates,
).filter(lambda limit: limit.concurrency is not None or limit.rate is not None)
actions = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(QUEUES), st.sampled_from(TYPES), st.sampled_from(KEYS)),
    st.tuples(st.just("limit"), limits),
    st.tuples(st.just("unlimit"), st.sampled_from(LIMITS)),
    st.tuples(st.just("claim"), st.integers(1, 6), st.integers(0, 3)),
    st.tuples(st.just("end"), st.integers(0, 9), st.sampled_from((Move.COMPLETE, Move.COMPLETE, Move.RELEASE))),
    st.tuples(st.just("wait"), st.sampled_from((0.000_001, 1.0, 1.999_999, 2.0, 5.0))),
)


@dataclass
class Model:
    """All that happened, and what the rules say about it."""

    limits: dict[tuple[LimitKind, str], FlowLimit] = field(default_factory=dict)
    starts: dict[tuple[LimitKind, str], list[tuple[Instant, str]]] = field(default_factory=dict)
    """under each limit since its window began: when, and for which name"""
    waiting: list[JobRecord] = field(default_factory=list)
    running: list[JobRecord] = field(default_factory=list)

    def limit(self, limit: FlowLimit) -> None:
        what = (limit.kind, limit.name)
        before = self.limits.get(what)
        window = None if before is None or before.rate is None else (before.rate.per, before.rate.algorithm)
        if window is None or limit.rate is None or window != (limit.rate.per, limit.rate.algorithm):
            self.starts[what] = []
        self.limits[what] = limit

    def unlimit(self, what: tuple[LimitKind, str]) -> None:
        self.limits.pop(what, None)

    def on(self, job: JobRecord) -> Iterator[tuple[FlowLimit, str]]:
        """The limits on a job, each with the name it counts for."""
        for what in (("queue", job.queue), ("type", job.type)):
            if what in self.limits:
                yield self.limits[what], what[1]
        key = job.limit_key
        if key is not None:
            for what in (("key", key), ("key", "c:*")):
                if what in self.limits and (what[1] == key or key.startswith("c:")):
                    yield self.limits[what], key
                    return

    def room(self, job: JobRecord, now: Instant) -> bool:
        return all(self._room(limit, name, now) for limit, name in self.on(job))

    def start(self, job: JobRecord, now: Instant) -> None:
        assert self.room(job, now), f"{job.queue}, {job.type}, {job.limit_key}: started under a full limit"
        before = [each for each in self.waiting if each.lane == job.lane]
        assert before[0].id == job.id, "within a lane the first to come starts first"
        for limit, name in self.on(job):
            self.starts[limit.kind, limit.name].append((now, name))
        self.waiting.remove(before[0])
        self.running.append(job)

    def _room(self, limit: FlowLimit, name: str, now: Instant) -> bool:
        in_use = sum((limit, name) in list(self.on(job)) for job in self.running)
        starts = [at for at, of in self.starts[limit.kind, limit.name] if of == name]
        places = limit.concurrency is None or in_use < limit.concurrency
        return places and (limit.rate is None or allowed(limit.rate, starts, now) > 0)


@pytest.mark.parametrize("make_backend", [MemoryBackend, SqliteBackend])
@settings(max_examples=120 * BUDGET, deadline=None)
@given(st.lists(actions, min_size=10, max_size=60))
def test_no_limit_is_exceeded_and_no_room_left_unused(
    make_backend: Callable[[], Backend], actions: list[tuple[Any, ...]]
) -> None:
    with asyncio.Runner() as runner:
        runner.run(play(make_backend(), actions))


async def play(backend: Backend, actions: list[tuple[Any, ...]]) -> None:
    runtime = FakeRuntime()
    store = await backend.open(runtime)
    model = Model()
    for action in [*actions, ("claim", 6, 0)]:
        match action:
            case ("add", queue, kind, key):
                new = new_job(kind, queue=queue, limit_key=key)
                await store.submit([Submission(jobs=[new])])
                model.waiting.append((await store.get("default", [new.id])).jobs[new.id])
            case ("limit", limit):
                await capabilities.LIMITS.of(store).put_limit(limit)
                model.limit(limit)
            case ("unlimit", what):
                assert await capabilities.LIMITS.of(store).remove_limit("default", *what) == (what in model.limits)
                model.unlimit(what)
            case ("claim", count, turn):
                await claim(store, model, count, turn)
            case ("end", which, move):
                await end(store, model, which, move)
            case ("wait", seconds):
                await runtime.advance(seconds)
    await backend.close()


async def claim(store: Store, model: Model, count: int, turn: int) -> None:
    leases = dict.fromkeys(TYPES, HOUR)
    claimed = await store.claim(claim_request(lease_us=leases, limit=count, turn=turn))
    for job in claimed.jobs:
        model.start(job, claimed.now)
    if len(claimed.jobs) == count:
        return
    unused = [job.id for job in model.waiting if model.room(job, claimed.now)]
    assert unused == [], "these could have started"
    if model.waiting:
        assert claimed.next_due is not None, "something waits for room"
        assert claimed.next_due > claimed.now


async def end(store: Store, model: Model, which: int, move: Move) -> None:
    if not model.running:
        return
    job = model.running.pop(which % len(model.running))
    await store.settle("worker", [settlement(job, move)])
    if move is Move.RELEASE:
        model.waiting.append((await store.get("default", [job.id])).jobs[job.id])
        model.waiting.sort(key=lambda job: (job.prio_key, job.time_key, job.seq))
