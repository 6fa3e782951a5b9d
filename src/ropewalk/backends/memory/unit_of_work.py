"""The unit of work of the store in memory: the changes of one verb to the tables.

Under the lock of the store, everything is changed in place. A record that was taken is in no index until `flush`, so it
is put back only once, however often it changed. Finished jobs stay in their index, in the order in which they finished,
unless they finish again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from ropewalk.backends.memory.graph import ParentKey, UnreportedOrphan
from ropewalk.backends.memory.tables import Tables, copied
from ropewalk.backends.workflow.propagation import BUDGET, Propagation
from ropewalk.backends.workflow.scopes import orphan_of
from ropewalk.backends.workflow.unit_of_work import Item, RecordKind, UnitOfWork
from ropewalk.domain.jobs.flags import HAS_DEPENDANTS, KEYED
from ropewalk.domain.jobs.idempotency import KeyRecord
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.dependency import Edge, Ending
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.domain.workflow.scope import Scope
from ropewalk.ports.store.consequences import Consequences, Moved


class MemoryUnitOfWork(UnitOfWork):
    """The records that one verb changes."""

    def __init__(self, tables: Tables, now: Instant) -> None:
        self._tables = tables
        self._now = now
        self._taken: dict[int, JobRecord] = {}
        """The open or new jobs that were taken, by seq. They are in no index."""
        self._finished: dict[int, tuple[JobRecord, Status, Instant | None]] = {}
        """The jobs that were finished when they were taken, with their status and the time at which they had
        finished."""

    def passes_over(self, kind: RecordKind, number: int) -> bool:
        """Returns False, because there are no stored rows here that could be damaged."""
        return False

    @property
    def now(self) -> Instant:
        return self._now

    def flush(self) -> None:
        """Puts every job that was taken into its index."""
        for job, status, finished_at in self._finished.values():
            if (job.status, job.finished_at) != (status, finished_at):
                self._tables.finished.remove(job, status)
                self._taken[job.seq] = job
        for job in self._taken.values():
            self._tables.put_back(job, self._now)
        self._finished.clear()
        self._taken.clear()

    # ── jobs

    def find(self, tenant: str, ids: Iterable[str]) -> dict[str, JobRecord]:
        jobs = self._tables.tenants.get(tenant)
        if jobs is None:
            return {}
        return {each: jobs[each] for each in ids if each in jobs}

    def load(self, seqs: Iterable[int]) -> list[JobRecord]:
        jobs = self._tables.jobs
        return [jobs[seq] for seq in seqs if seq in jobs]

    def spawned(self, tenant: str, parent_id: str, keys: Iterable[str]) -> dict[str, JobRecord]:
        held = self._tables.spawned
        return {key: held[tenant, parent_id, key] for key in keys if (tenant, parent_id, key) in held}

    def chain_tail(self, tenant: str, chain_id: str) -> JobRecord | None:
        members = self._tables.continuations.get((tenant, chain_id))
        return members[-1] if members else self._tables.find(tenant, chain_id)

    def find_shared(self, tenant: str, ids: Iterable[str]) -> dict[str, JobRecord]:
        return self.find(tenant, ids)

    def number(self, jobs: Sequence[JobRecord]) -> None:
        for seq, job in enumerate(jobs, self._tables.last_seq + 1):
            job.seq = seq
        self._tables.last_seq += len(jobs)

    def insert(self, jobs: Sequence[JobRecord]) -> None:
        for job in jobs:
            self._tables.register(job)
            self._taken[job.seq] = job

    def take(self, job: JobRecord) -> None:
        if job.seq in self._taken or job.seq in self._finished:
            return
        if job.terminal:
            self._finished[job.seq] = (job, job.status, job.finished_at)
        else:
            self._tables.take_up(job)
            self._taken[job.seq] = job

    def took(self, job: JobRecord) -> None:
        """Takes a job that has left its index already."""
        self._taken[job.seq] = job

    def record(self, job: JobRecord, effects: Effects) -> None:
        self._tables.counts.moved(job, effects, self._now)
        if effects.attempt is not None:
            self._tables.attempts.setdefault(job.seq, []).append(effects.attempt)
        if effects.event is not None:
            self._tables.record(effects.event)
        if job.flags & KEYED and job.terminal:
            self._tables.keys.close(job, self._now)

    # ── keys

    def find_key(self, tenant: str, job_type: str, key: str) -> KeyRecord | None:
        return self._tables.keys.find((tenant, job_type, key))

    def put_key(self, held: KeyRecord) -> None:
        self._tables.keys.put(held)

    def may_reopen(self, job: JobRecord) -> bool:
        return self._tables.keys.may_reopen(job)

    def reopen_key(self, job: JobRecord) -> None:
        self._tables.keys.reopen(job, self._now)

    # ── edges

    def note_dependants(self, parents: Sequence[JobRecord]) -> None:
        for job in parents:
            self.take(job)
            job.flags |= HAS_DEPENDANTS

    def add_edges(self, edges: Sequence[Edge]) -> None:
        for edge in edges:
            self._tables.edges.put(edge)

    def waiting_edges(self, parents: Sequence[ParentKey], limit: int) -> list[Edge]:
        return self._tables.edges.waiting(parents, limit)

    def edges_of(self, seqs: Iterable[int]) -> list[Edge]:
        return self._tables.edges.of_children(seqs)

    def ended_edges(self, parents: Sequence[ParentKey]) -> list[Edge]:
        return [edge for edge in self._tables.edges.resolved(parents) if edge.ending is not Ending.COMPLETED]

    def set_ending(self, edges: Sequence[Edge], ending: Ending | None) -> None:
        self._tables.edges.end(edges, ending)

    # ── scopes

    def scopes(self, ids: Iterable[int]) -> dict[int, Scope]:
        held = self._tables.groups.scopes
        return {each: held[each] for each in ids if each in held}

    def add_scope(self, scope: Scope) -> None:
        self._tables.groups.add(scope)

    def keep_contribution(self, root: int, seq: int, contribution: Contribution) -> None:
        self._tables.groups.contributions.setdefault(root, []).append(contribution)

    # ── later

    def postpone(self, items: Sequence[Item]) -> None:
        self._tables.postponed.extend(items)

    def report_orphan(self, scope: Scope) -> None:
        groups = self._tables.groups
        if scope.report_orphan or groups.orphans_recorded_until > self.now:
            orphan = orphan_of(scope)
            groups.orphans[orphan.id] = UnreportedOrphan(orphan)

    def step_names(self, job: JobRecord) -> list[tuple[int, str]]:
        return [(step.position, step.name) for step in self._tables.steps.of(job.seq)]

    def forget_steps(self, job: JobRecord, *, from_position: int = 0) -> None:
        self._tables.steps.forget_steps(job.seq, from_position)


class Change:
    """A change of one verb that concerns more than one plain job: its unit of work and its consequences."""

    def __init__(self, tables: Tables, now: Instant, *, left_over: Iterable[Item] = (), budget: int = BUDGET) -> None:
        self.now = now
        self.unit_of_work = MemoryUnitOfWork(tables, now)
        self.propagation = Propagation(self.unit_of_work, budget)
        self.propagation.resume(left_over)

    def moved(self, job: JobRecord, effects: Effects) -> None:
        """Propagates the end of a job that the store itself moved, and reports it among the consequences."""
        self.propagation.moved.append(Moved(job=job, move=effects.move))
        self.propagation.ended(job, effects)

    def end(self) -> Consequences:
        """Does what follows from the change, and puts all jobs back. The consequences contain copies."""
        consequences = self.propagation.run()
        self.unit_of_work.flush()
        if not consequences.moved:
            return consequences
        return structs.replace(
            consequences, moved=[structs.replace(each, job=copied(each.job)) for each in consequences.moved]
        )
