"""Everything that the store contains, and in which index a job of each status is.

A verb takes a job up, lets the domain change it and puts it back, so that no verb can forget an index. unit_of_work.py
does that for a whole transaction.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct, structs

from ropewalk.backends.memory.documents import Documents
from ropewalk.backends.memory.graph import Edges, Groups
from ropewalk.backends.memory.job_index import Finished, Leases
from ropewalk.backends.memory.keys import Keys
from ropewalk.backends.memory.lanes import Lanes
from ropewalk.backends.memory.limits import FlowLimits
from ropewalk.backends.memory.quotas import TenantQuotas
from ropewalk.backends.memory.statistics import Counts
from ropewalk.backends.memory.steps import StepsAndSignals
from ropewalk.backends.workflow.unit_of_work import Item
from ropewalk.domain.jobs.lease import StartedTickets
from ropewalk.domain.jobs.order import TenantQueue
from ropewalk.domain.jobs.record import AttemptRecord, EventRecord, JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.logs import LogLine
from ropewalk.domain.time import Instant
from ropewalk.ports.store.leases import WorkerCard
from ropewalk.ports.store.schedules import ScheduleRecord


class Worker(Struct):
    """A worker that has registered, and which of its jobs have started."""

    card: WorkerCard
    started: StartedTickets = StartedTickets()
    turn: int = 0
    """The number of the claim from which this is known."""


class Tables:
    """The tables of one store."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.last_seq = 0
        self.jobs: dict[int, JobRecord] = {}
        """All jobs, by seq."""
        self.tenants: dict[str, dict[str, JobRecord]] = {}
        """All jobs, by tenant and id; those of a tenant are in the order of their submission."""
        self.attempts: dict[int, list[AttemptRecord]] = {}
        """The attempts that did not succeed, by seq. A plain job has no attempts and no events."""
        self.events: dict[int, list[EventRecord]] = {}
        self.lines: dict[int, dict[tuple[int, int], LogLine]] = {}
        """The log lines, by seq and then by (fence, position), in order."""
        self.spawned: dict[tuple[str, str, str], JobRecord] = {}
        """The children with a spawn key, by (tenant, parent id, spawn key)."""
        self.continuations: dict[tuple[str, str], list[JobRecord]] = {}
        """The members of each chain but the first, in order, by (tenant, chain id)."""
        self.keys = Keys()
        self.lanes = Lanes()
        self.leases = Leases()
        self.limits = FlowLimits(self.leases)
        self.quotas = TenantQuotas(self.lanes, self.leases, self.limits)
        self.finished = Finished()
        self.edges = Edges()
        self.groups = Groups()
        self.steps = StepsAndSignals()
        self.counts = Counts()
        self.postponed: deque[Item] = deque()
        """The work that is left to `cascade`."""
        self.paused: set[TenantQueue] = set()
        self.once: dict[tuple[str, str], tuple[Instant, str | None]] = {}
        """For each (tenant, key), until when it is taken, and by whom."""
        self.workers: dict[str, Worker] = {}
        self.schedules: dict[tuple[str, str], ScheduleRecord] = {}
        """The schedules, by (tenant, name)."""
        self.documents = Documents()

    def find(self, tenant: str, job_id: str) -> JobRecord | None:
        jobs = self.tenants.get(tenant)
        return None if jobs is None else jobs.get(job_id)

    def register(self, job: JobRecord) -> None:
        """Adds a new job, so that it can be found. It is in no index until it is put back."""
        self.counts.submitted(job)
        self.jobs[job.seq] = job
        of_tenant = self.tenants.get(job.tenant)
        if of_tenant is None:
            of_tenant = self.tenants[job.tenant] = {}
        of_tenant[job.id] = job
        if job.parent_id is not None and job.spawn_key is not None:
            self.spawned[job.tenant, job.parent_id, job.spawn_key] = job
        if job.chain_id is not None:
            self.continuations.setdefault((job.tenant, job.chain_id), []).append(job)

    def remove(self, job: JobRecord) -> None:
        """Deletes a finished job and everything that is recorded about it."""
        self.counts.removed(job)
        self.finished.remove(job, job.status)
        self.keys.forget(job)
        del self.jobs[job.seq]
        of_tenant = self.tenants[job.tenant]
        del of_tenant[job.id]
        if not of_tenant:
            del self.tenants[job.tenant]
        if job.parent_id is not None and job.spawn_key is not None:
            del self.spawned[job.tenant, job.parent_id, job.spawn_key]
        if job.chain_id is not None:
            self._leave_chain(job.tenant, job.chain_id, job.seq)
        self.attempts.pop(job.seq, None)
        self.events.pop(job.seq, None)
        self.lines.pop(job.seq, None)
        self.edges.remove_child(job.seq)
        self.groups.remove(job.seq)
        self.steps.remove(job.seq)

    def take_up(self, job: JobRecord) -> None:
        """Removes an open job from its index, because it is about to change."""
        if job.status is Status.WAITING:
            self.lanes.take_up(job)
        else:
            self.leases.remove(job)

    def put_back(self, job: JobRecord, now: Instant) -> None:
        """Adds a job to the index of its status."""
        if job.status is Status.WAITING:
            self.lanes.add(job, now)
        elif job.status is Status.RUNNING:
            self.leases.add(job)
        else:
            self.finished.add(job)

    def record(self, event: EventRecord) -> None:
        self.events.setdefault(event.seq, []).append(event)

    def _leave_chain(self, tenant: str, chain_id: str, seq: int) -> None:
        left = [job for job in self.continuations.pop((tenant, chain_id), ()) if job.seq != seq]
        if left:
            self.continuations[tenant, chain_id] = left


def without_bytes(job: JobRecord) -> JobRecord:
    """A copy for those who do not want input, checkpoint and result."""
    twin = copied(job)
    twin.input, twin.checkpoint, twin.result = b"", None, None
    return twin


def copied(job: JobRecord) -> JobRecord:
    """Returns a copy for the caller of a verb, so that nobody outside of the store can change the stored record."""
    twin = structs.replace(job)
    if twin.tags:
        twin.tags = dict(twin.tags)
    return twin
