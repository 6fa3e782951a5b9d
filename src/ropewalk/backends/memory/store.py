"""The store's verbs. Each is one change under one lock; what it does is in the module it names.

    submitting   jobs come in                    operating   people change them
    claiming     workers get them                upkeep      lost leases, deadlines, retention
    holding      workers keep and end them       reading     everybody looks

All of them work on `tables`, and what happens to a record is decided by ropewalk.domain. Nothing survives the process.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ropewalk.backends.memory import claiming, holding, operating, reading, submitting, upkeep
from ropewalk.backends.memory.notifier import LocalNotifier
from ropewalk.backends.memory.tables import Tables, copied
from ropewalk.domain.instants import Instant, Span
from ropewalk.domain.job import JobRecord
from ropewalk.domain.operator import Amendment, Revival
from ropewalk.domain.retention import Retention
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.transition import Settlement
from ropewalk.ports.exchange import (
    AmendAnswer,
    CancelAnswer,
    Claimed,
    ClaimRequest,
    Durability,
    Moved,
    Note,
    Noted,
    Page,
    Pruned,
    QueueInfo,
    Renewal,
    Renewed,
    ReviveAnswer,
    Settled,
    Snapshot,
    Submission,
    SubmitAnswer,
    Trail,
    WorkerCard,
)
from ropewalk.ports.notifier import Notifier
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store import Store


class MemoryStore(Store):
    """`epoch` goes into every fence; raise it to outdate all leases given out before."""

    def __init__(self, runtime: Runtime, *, epoch: int = 0) -> None:
        self._runtime = runtime
        self._tables = Tables(epoch)
        self._lock = threading.Lock()
        self._notifier = LocalNotifier()

    @property
    def durability(self) -> Durability:
        return Durability.D0

    @property
    def notifier(self) -> Notifier:
        return self._notifier

    async def open(self) -> None:
        """There is nothing to connect to."""

    async def close(self) -> None:
        """What was accepted stays until the store itself is gone."""

    async def clock(self) -> Instant:
        return self._runtime.now()

    # ── intake

    async def submit(self, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
        with self._lock:
            now = self._runtime.now()
            return [submitting.submit(self._tables, submission, now) for submission in submissions]

    async def cancel(self, tenant: str, ids: Sequence[str], *, reason: str | None, force: bool) -> list[CancelAnswer]:
        with self._lock:
            now = self._runtime.now()
            return [operating.cancel(self._tables, tenant, each, reason=reason, force=force, now=now) for each in ids]

    async def revive(self, tenant: str, ids: Sequence[str], revival: Revival) -> list[ReviveAnswer]:
        with self._lock:
            now = self._runtime.now()
            return [operating.revive(self._tables, tenant, each, revival, now) for each in ids]

    async def amend(self, tenant: str, job_id: str, amendment: Amendment) -> AmendAnswer:
        with self._lock:
            return operating.amend(self._tables, tenant, job_id, amendment, self._runtime.now())

    async def delete(self, tenant: str, ids: Sequence[str]) -> dict[str, bool | None]:
        with self._lock:
            return {each: operating.delete(self._tables, tenant, each) for each in dict.fromkeys(ids)}

    # ── leasing

    async def enlist(self, card: WorkerCard) -> None:
        with self._lock:
            holding.enlist(self._tables, card, self._runtime.now())

    async def dismiss(self, owner: str) -> None:
        with self._lock:
            self._tables.workers.pop(owner, None)

    async def claim(self, request: ClaimRequest) -> Claimed:
        with self._lock:
            return claiming.claim(self._tables, request, self._runtime.now())

    async def renew(self, owner: str, renewals: Sequence[Renewal]) -> Renewed:
        with self._lock:
            return holding.renew(self._tables, owner, renewals, self._runtime.now())

    async def settle(self, owner: str, settlements: Sequence[Settlement]) -> list[Settled]:
        with self._lock:
            now = self._runtime.now()
            return [holding.settle(self._tables, owner, asked, now) for asked in settlements]

    async def note(self, note: Note) -> Noted:
        with self._lock:
            return holding.note(self._tables, note, self._runtime.now())

    # ── upkeep

    async def sweep(self, limit: int) -> list[Moved]:
        with self._lock:
            return upkeep.sweep(self._tables, limit, self._runtime.now())

    async def prune(self, retention: Retention, limit: int) -> Pruned:
        with self._lock:
            return upkeep.prune(self._tables, retention, limit, self._runtime.now())

    async def once(self, tenant: str, key: str, ttl_us: Span) -> bool:
        with self._lock:
            return upkeep.once(self._tables, tenant, key, ttl_us, self._runtime.now())

    async def pause(self, tenant: str, queue: str, *, paused: bool) -> None:
        with self._lock:
            if paused:
                self._tables.paused.add((tenant, queue))
            else:
                self._tables.paused.discard((tenant, queue))

    # ── reading

    async def get(self, tenant: str, ids: Sequence[str]) -> Snapshot:
        with self._lock:
            jobs = {each: copied(job) for each in ids if (job := self._tables.find(tenant, each)) is not None}
            return Snapshot(now=self._runtime.now(), jobs=jobs)

    async def search(self, tenant: str, wanted: Filter, *, order: Order, cursor: str | None, limit: int) -> Page:
        with self._lock:
            now = self._runtime.now()
            return reading.search(self._tables, tenant, wanted, order=order, cursor=cursor, limit=limit, now=now)

    async def count(self, tenant: str, wanted: Filter) -> int:
        with self._lock:
            return reading.count(self._tables, tenant, wanted, self._runtime.now())

    async def trail(self, tenant: str, job_id: str) -> Trail | None:
        with self._lock:
            return reading.trail(self._tables, tenant, job_id, self._runtime.now())

    async def queues(self, tenant: str) -> list[QueueInfo]:
        with self._lock:
            return reading.queues(self._tables, tenant, self._runtime.now())

    async def ahead_of(self, job: JobRecord) -> int:
        with self._lock:
            return reading.ahead_of(self._tables, job, self._runtime.now())

    async def workers(self) -> list[WorkerCard]:
        with self._lock:
            return [worker.card for worker in self._tables.workers.values()]
