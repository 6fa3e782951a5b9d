"""Reads everything that a snapshot contains from the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from ropewalk.cli import render
from ropewalk.cli.top.rates import RateMeter, Rates
from ropewalk.cli.top.snapshot import FailureLine, QueueLine, Snapshot, TypeLine, WorkerLine
from ropewalk.cli.worker_view import serving, state_of
from ropewalk.client.store_client import StoreClient
from ropewalk.client.views.jobs import JobInfo
from ropewalk.client.views.schedules import ScheduleInfo
from ropewalk.domain.jobs.states import State
from ropewalk.domain.statistics.statistics import Flow, Share, Statistics
from ropewalk.domain.time import Instant, Seconds, to_instant, to_seconds
from ropewalk.errors import Unsupported
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.leases import WorkerCard
from ropewalk.ports.store.reading import QueueInfo

FAILURES_SHOWN: Final = 10
"""How many failures are read."""


class HasStats(Protocol):
    """The part of a client that answers with statistics; tests count its calls."""

    async def stats(self, *, last: Seconds, slices: int) -> Statistics: ...


class SnapshotReader:
    """The reader reads one snapshot after another, and reads failures again only if the statistics have changed."""

    def __init__(
        self, client: StoreClient, counts: HasStats, runtime: Runtime, *, url: str, tenant: str, last_seconds: float
    ) -> None:
        self._client = client
        self._counts = counts
        self._runtime = runtime
        self._url = url
        self._tenant = tenant
        self._last_seconds = last_seconds
        self._meter = RateMeter()
        self._queues: dict[str, QueueInfo] = {}
        self._failed: tuple[int, tuple[FailureLine, ...]] | None = None

    async def read(self) -> Snapshot:
        """Read the present snapshot."""
        client = self._client
        now = to_instant(await client.now(), "now")
        statistics = await self._counts.stats(last=self._last_seconds, slices=60)
        rates = self._meter.measure(statistics, self._runtime.monotonic(), now)
        return Snapshot(
            url=self._url,
            tenant=self._tenant,
            now=now,
            submitted_per_second=rates.submitted,
            finished_per_second=rates.finished,
            line=_line(statistics, rates.finished),
            slice_us=statistics.slice_us,
            queues=tuple(_queue(each, now) for each in await self._known_queues()),
            types=tuple(_type(each, rates) for each in statistics.shares if each.flow.finished or each.flow.retried),
            workers=tuple(_worker(each, now) for each in await client.workers()),
            failures=await self._failures(statistics.flow),
            next_fire=await self._next_fire(),
        )

    async def _next_fire(self) -> tuple[str, Instant] | None:
        try:
            return _next_fire(await self._client.schedules())
        except Unsupported:
            return None

    async def _known_queues(self) -> list[QueueInfo]:
        """Return all queues that were ever found: an empty queue keeps its row, because vanishing rows distract."""
        found = {each.name: each for each in await self._client.queues()}
        empty = {name: QueueInfo(name=name, paused=False, counts={}, oldest_ready_at=None) for name in self._queues}
        self._queues = dict(sorted((empty | found).items()))
        return list(self._queues.values())

    async def _failures(self, flow: Flow) -> tuple[FailureLine, ...]:
        """Return the newest failures; the search is expensive, so it is made only if there are more than before."""
        failed = flow.failed + flow.dead_letter + flow.retried
        if self._failed is None or self._failed[0] != failed:
            page = await self._client.failures(limit=FAILURES_SHOWN)
            self._failed = failed, tuple(_failure(job) for job in page.jobs)
        return self._failed[1]


def _line(statistics: Statistics, finished_per_second: float) -> tuple[float, ...]:
    """Return the finished jobs per second of each slice; the last, unfinished slice has the present rate."""
    *over, _ = [each.flow.finished / to_seconds(statistics.slice_us) for each in statistics.line] or [0.0]
    return (*over, finished_per_second)


def _queue(queue: QueueInfo, now: Instant) -> QueueLine:
    oldest = queue.oldest_ready_at
    return QueueLine(
        name=queue.name,
        paused=queue.paused,
        ready=queue.counts.get(State.SCHEDULED, 0),
        running=queue.counts.get(State.RUNNING, 0),
        delayed=queue.counts.get(State.DELAYED, 0),
        retrying=queue.counts.get(State.RETRYING, 0),
        pending=queue.counts.get(State.PENDING, 0),
        oldest_us=None if oldest is None else max(0, now - oldest),
    )


def _type(share: Share, rates: Rates) -> TypeLine:
    flow, name = share.flow, share.type or ""
    return TypeLine(
        name=name,
        finished_per_second=rates.types.get(name, 0.0),
        finished=flow.finished,
        failed=flow.failed + flow.dead_letter,
        retried=flow.retried,
        run=flow.run,
        wait=flow.wait,
    )


def _worker(card: WorkerCard, now: Instant) -> WorkerLine:
    return WorkerLine(
        id=card.id,
        where=f"{card.host}:{card.pid}",
        state=state_of(card, now),
        held=card.held,
        slots=card.concurrency,
        silent_us=max(0, now - card.beat_at),
        up_us=max(0, now - card.started_at),
        serves=serving(card),
    )


def _failure(job: JobInfo) -> FailureLine:
    at = job.finished_at or job.started_at or job.created_at
    error = "" if job.error is None else f"{job.error.type + ': ' if job.error.type else ''}{job.error.message}"
    return FailureLine(
        at=to_instant(at, "at"), id=job.id, type=job.type, state=job.state.value, error=render.safe(error)
    )


def _next_fire(schedules: Sequence[ScheduleInfo]) -> tuple[str, Instant] | None:
    coming = [
        (to_instant(each.next_fire, "next_fire"), each.name)
        for each in schedules
        if each.next_fire is not None and not each.paused
    ]
    if not coming:
        return None
    at, name = min(coming)
    return name, at
