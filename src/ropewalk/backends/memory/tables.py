"""Everything the store holds, and the one rule for keeping it: take a job up, let the domain change it, put it back.

`take_up` and `put_back` know where a job of each status is kept, so no verb can forget an index.
"""

from __future__ import annotations

from msgspec import Struct, structs

from ropewalk.backends.memory.finished import Finished
from ropewalk.backends.memory.keys import Keys
from ropewalk.backends.memory.lanes import Lanes, Line
from ropewalk.backends.memory.leases import Leases
from ropewalk.domain.flags import KEYED
from ropewalk.domain.instants import Instant
from ropewalk.domain.job import AttemptRecord, EventRecord, JobRecord, new_record
from ropewalk.domain.states import Status
from ropewalk.domain.transition import Effects
from ropewalk.ports.exchange import WorkerCard


class Worker(Struct):
    """A worker that made itself known, and up to which ticket its jobs have started."""

    card: WorkerCard
    started_upto: int = 0


class Tables:
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.jobs: dict[int, JobRecord] = {}
        """by seq"""
        self.tenants: dict[str, dict[str, JobRecord]] = {}
        """jobs by tenant and id, each tenant's in order of submission"""
        self.attempts: dict[int, list[AttemptRecord]] = {}
        """by seq, like events; a plain job has neither"""
        self.events: dict[int, list[EventRecord]] = {}
        self.spawned: dict[tuple[str, str, str], JobRecord] = {}
        """by (tenant, parent id, spawn key)"""
        self.keys = Keys()
        self.lanes = Lanes()
        self.leases = Leases()
        self.finished = Finished()
        self.paused: set[Line] = set()
        self.once: dict[tuple[str, str], Instant] = {}
        """(tenant, key) → until when it is taken"""
        self.workers: dict[str, Worker] = {}
        self._last_seq = 0

    def find(self, tenant: str, job_id: str) -> JobRecord | None:
        jobs = self.tenants.get(tenant)
        return None if jobs is None else jobs.get(job_id)

    def insert(self, job: JobRecord, now: Instant) -> None:
        """Number a new job and put it where it belongs."""
        self._last_seq += 1
        job.seq = self._last_seq
        self.jobs[job.seq] = job
        of_tenant = self.tenants.get(job.tenant)
        if of_tenant is None:
            of_tenant = self.tenants[job.tenant] = {}
        of_tenant[job.id] = job
        if job.parent_id is not None and job.spawn_key is not None:
            self.spawned[job.tenant, job.parent_id, job.spawn_key] = job
        self.put_back(job, now)

    def remove(self, job: JobRecord) -> None:
        """Forget a finished job and everything recorded about it."""
        self.take_up(job)
        self.keys.forget(job)
        del self.jobs[job.seq]
        of_tenant = self.tenants[job.tenant]
        del of_tenant[job.id]
        if not of_tenant:
            del self.tenants[job.tenant]
        if job.parent_id is not None and job.spawn_key is not None:
            del self.spawned[job.tenant, job.parent_id, job.spawn_key]
        self.attempts.pop(job.seq, None)
        self.events.pop(job.seq, None)

    def take_up(self, job: JobRecord) -> None:
        """Out of every index, because it is about to change."""
        if job.status is Status.WAITING:
            self.lanes.left(job)
        elif job.status is Status.RUNNING:
            self.leases.remove(job)
        else:
            self.finished.remove(job)

    def put_back(self, job: JobRecord, now: Instant) -> None:
        if job.status is Status.WAITING:
            self.lanes.add(job, now)
        elif job.status is Status.RUNNING:
            self.leases.add(job)
        else:
            self.finished.add(job)
            if job.flags & KEYED:
                self.keys.close(job, now)

    def write(self, job: JobRecord, effects: Effects, now: Instant) -> None:
        """Everything that belongs to one transition of the domain."""
        self.put_back(job, now)
        if effects.attempt is not None:
            self.attempts.setdefault(job.seq, []).append(effects.attempt)
        if effects.event is not None:
            self.record(effects.event)
        if effects.follow_up is not None and self.find(job.tenant, effects.follow_up.id) is None:
            self.insert(new_record(effects.follow_up, seq=0, now=now), now)

    def record(self, event: EventRecord) -> None:
        self.events.setdefault(event.seq, []).append(event)


def copied(job: JobRecord) -> JobRecord:
    """What leaves the store: nobody outside can change what is kept."""
    twin = structs.replace(job)
    if twin.tags:
        twin.tags = dict(twin.tags)
    return twin
