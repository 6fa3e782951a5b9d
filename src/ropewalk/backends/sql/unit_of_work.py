"""The unit of work of a SQL store: one transaction as the rules of workflows see it (backends/workflow).

A read is one statement for many rows, and its objects are remembered: reading a record twice returns the same object.
Writes are collected, the jobs here and everything else in books, and written together, before a read that could depend
on them and at the end of the verb.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ropewalk.backends.sql import records, steps
from ropewalk.backends.sql.damage import log_left_out
from ropewalk.backends.sql.graph import EdgeBook, ScopeBook, put_orphan
from ropewalk.backends.sql.keys import KeyBook
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.records import json_text
from ropewalk.backends.sql.statistics import CounterBook
from ropewalk.backends.sql.tx import Row, Tx
from ropewalk.backends.workflow.unit_of_work import Item, RecordKind, Resolve, UnitOfWork
from ropewalk.domain.jobs.flags import HAS_DEPENDANTS
from ropewalk.domain.jobs.idempotency import KeyRecord
from ropewalk.domain.jobs.record import AttemptRecord, EventRecord, JobRecord
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.domain.workflow.scope import Scope, ScopeChange

_postponed = msgspec.json.Decoder(list[tuple[str, str]])
_ints = msgspec.json.Decoder(list[int])


class SqlUnitOfWork(UnitOfWork):
    """The records of one transaction. Each job is loaded once, changed in place, and written back with the others."""

    def __init__(self, tx: Tx, lanes: LaneBook, *, wait: bool = True) -> None:
        """With `wait=False`, reading an idempotency key that another transaction has locked raises MustWait."""
        self._tx = tx
        self._lanes = lanes
        self._by_seq: dict[int, JobRecord] = {}
        self._new_by_id: dict[tuple[str, str], JobRecord] = {}
        """The new jobs, which are not in the table yet, by (tenant, id)."""
        self._new: list[JobRecord] = []
        self._taken: dict[int, JobRecord] = {}
        """The jobs that `flush` writes back, by seq."""
        self._shared: set[int] = set()
        """The jobs that were loaded with a shared lock: other transactions may change their leases and progress."""
        self._journal = Journal(tx)
        self._keys = KeyBook(tx, wait=wait)
        self._edges = EdgeBook(tx)
        self._scopes = ScopeBook(tx)
        self.counters = CounterBook(tx, lanes)

    @property
    def now(self) -> Instant:
        return self._tx.now

    def flush(self) -> None:
        """Writes everything that has changed so far."""
        self._flush_jobs()
        for book in (self._journal, self._keys, self._edges, self._scopes, self.counters):
            book.flush()

    def _flush_jobs(self) -> None:
        """Writes the new jobs and then all changed ones."""
        new, self._new = self._new, []
        if new:
            records.insert(self._tx, self._lanes, new)
        taken, self._taken = self._taken, {}
        records.save(self._tx, list(taken.values()))

    def passes_over(self, kind: RecordKind, number: int) -> bool:
        return (kind, number) in self._tx.passed_over

    # ── jobs

    def find(self, tenant: str, ids: Iterable[str]) -> dict[str, JobRecord]:
        return self._find(tenant, ids, shared=False)

    def find_shared(self, tenant: str, ids: Iterable[str]) -> dict[str, JobRecord]:
        return self._find(tenant, ids, shared=True)

    def load(self, seqs: Iterable[int]) -> list[JobRecord]:
        return self._load(seqs, shared=False)

    def spawned(self, tenant: str, parent_id: str, keys: Iterable[str]) -> dict[str, JobRecord]:
        self._flush_jobs()
        wanted = msgspec.json.encode(list(keys)).decode()
        children = self._query(self._tx.sql.seqs_of_spawns, wanted, parent_id, tenant)
        return {job.spawn_key: job for job in children if job.spawn_key is not None}

    def chain_tail(self, tenant: str, chain_id: str) -> JobRecord | None:
        self._flush_jobs()
        return next(iter(self._query(self._tx.sql.chain_of, chain_id, tenant, 1, shared=True)), None)

    def number(self, jobs: Sequence[JobRecord]) -> None:
        for job, seq in zip(jobs, self._tx.take_seqs(len(jobs)), strict=True):
            job.seq = seq

    def insert(self, jobs: Sequence[JobRecord]) -> None:
        self._new += jobs
        for job in jobs:
            self._by_seq[job.seq] = self._new_by_id[job.tenant, job.id] = job

    def take(self, job: JobRecord) -> None:
        if job.seq in self._shared:
            self._reload(job)
        self._taken[job.seq] = job

    def record(self, job: JobRecord, effects: Effects) -> None:
        self.take(job)
        self._journal.add(effects)
        self.counters.moved(job, effects)
        if job.terminal:
            self._keys.close(job)

    def note(self, job: JobRecord, event: EventRecord) -> None:
        """Records an event of a job that is not a transition."""
        self.take(job)
        self._journal.add_event(event)

    def _find(self, tenant: str, ids: Iterable[str], *, shared: bool) -> dict[str, JobRecord]:
        wanted = dict.fromkeys(ids)
        found = {each: job for each in wanted if (job := self._new_by_id.get((tenant, each))) is not None}
        others = [each for each in wanted if each not in found]
        if others:
            stored = self._query(self._tx.sql.seqs_of_ids, msgspec.json.encode(others).decode(), tenant, shared=shared)
            found |= {job.id: job for job in stored}
        return found

    def _query(self, sql: str, *values: str | int, shared: bool = False) -> list[JobRecord]:
        """Loads the jobs whose seqs a statement returns."""
        return self._load(_ints.decode(self._tx.value(sql, values)), shared=shared)

    def _load(self, seqs: Iterable[int], *, shared: bool) -> list[JobRecord]:
        wanted = list(seqs)
        shared = shared and bool(self._tx.sql.load_shared)
        statement = self._tx.sql.load_shared if shared else self._tx.sql.load_jobs
        for job in records.load(self._tx, [seq for seq in wanted if seq not in self._by_seq], statement):
            self._by_seq[job.seq] = job
            if shared:
                self._shared.add(job.seq)
        return [self._by_seq[seq] for seq in wanted if seq in self._by_seq]

    def _reload(self, job: JobRecord) -> None:
        """Loads a job again, with a lock of its own, so that changes of other transactions are not overwritten."""
        self._shared.discard(job.seq)
        for fresh in records.load(self._tx, [job.seq]):
            for name in job.__struct_fields__:
                setattr(job, name, getattr(fresh, name))

    # ── keys

    def find_key(self, tenant: str, job_type: str, key: str) -> KeyRecord | None:
        return self._keys.find((tenant, job_type, key))

    def put_key(self, held: KeyRecord) -> None:
        self._keys.put(held)

    def may_reopen(self, job: JobRecord) -> bool:
        return self._keys.may_reopen(job)

    def move_key(self, job: JobRecord) -> None:
        """Lets the idempotency key of a job stand for its new input."""
        self._keys.move(job)

    def reopen_key(self, job: JobRecord) -> None:
        self._keys.reopen(job)

    # ── edges

    def note_dependants(self, parents: Sequence[JobRecord]) -> None:
        for job in parents:
            job.flags |= HAS_DEPENDANTS
        unwritten = {job.seq for job in self._new}
        stored = [job.seq for job in parents if job.seq not in unwritten]
        if stored:
            self._tx.run(self._tx.sql.note_dependants, (msgspec.json.encode(stored).decode(),))

    def add_edges(self, edges: Sequence[Edge]) -> None:
        self._edges.add(edges)

    def waiting_edges(self, parents: Sequence[tuple[ParentKind, int]], limit: int) -> list[Edge]:
        return self._edges.waiting(parents, limit)

    def edges_of(self, seqs: Iterable[int]) -> list[Edge]:
        return self._edges.of_children(seqs)

    def ended_edges(self, parents: Sequence[tuple[ParentKind, int]]) -> list[Edge]:
        return self._edges.ended_otherwise(parents)

    def set_ending(self, edges: Sequence[Edge], ending: Ending | None) -> None:
        self._edges.set_ending(edges, ending)

    # ── scopes

    def scopes(self, ids: Iterable[int]) -> dict[int, Scope]:
        return self._scopes.get(ids)

    def add_scope(self, scope: Scope) -> None:
        self._scopes.add(scope)

    def keep_contribution(self, root: int, seq: int, contribution: Contribution) -> None:
        self._scopes.keep(root, seq, contribution)

    # ── later

    def postpone(self, items: Sequence[Item]) -> None:
        rows = [(_kind(item), msgspec.json.encode(item).decode()) for item in items]
        self._tx.run_rows(self._tx.sql.insert_cascade, rows)

    def take_postponed(self, limit: int) -> list[Item]:
        """Removes and returns the oldest postponed items. The caller postpones again what it does not finish."""
        rows = _postponed.decode(self._tx.value(self._tx.sql.oldest_cascade, (limit,)))
        if rows:
            self._tx.run(self._tx.sql.delete_cascade, (limit,))
        return [item for kind, text in rows if (item := self._item(kind, text)) is not None]

    def _item(self, kind: str, text: str) -> Item | None:
        try:
            return _item(kind, text)
        except msgspec.DecodeError as error:
            if not self._tx.careful:
                raise
            log_left_out(self._tx, "deferred_work", error)
            return None

    def report_orphan(self, scope: Scope) -> None:
        put_orphan(self._tx, scope)

    def step_names(self, job: JobRecord) -> list[tuple[int, str]]:
        return steps.names_of(self._tx, job.seq)

    def forget_steps(self, job: JobRecord, *, from_position: int = 0) -> None:
        steps.forget(self._tx, job.seq, from_position)


class Journal:
    """The attempts and events of one transaction, which are collected and written together."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._attempts: list[Row] = []
        self._events: list[Row] = []

    def add(self, effects: Effects) -> None:
        if effects.attempt is not None:
            self._attempts.append(_attempt_row(effects.attempt))
        if effects.event is not None:
            self.add_event(effects.event)

    def add_event(self, event: EventRecord) -> None:
        self._events.append((event.seq, event.rev, event.kind, event.at, event.reason))

    def flush(self) -> None:
        attempts, self._attempts = self._attempts, []
        events, self._events = self._events, []
        self._tx.run_rows(self._tx.sql.insert_attempts, attempts)
        self._tx.run_rows(self._tx.sql.insert_events, events)


def _attempt_row(ended: AttemptRecord) -> Row:
    return (
        ended.seq,
        ended.fence,
        ended.run,
        ended.attempt,
        ended.move.value,
        ended.start_rev,
        ended.rev,
        ended.started_at,
        ended.ended_at,
        ended.owner,
        json_text(ended.error),
        ended.next_run_at,
    )


def _kind(item: Item) -> str:
    return "resolve" if isinstance(item, Resolve) else "change"


def _item(kind: str, text: str) -> Item:
    if kind == "resolve":
        return msgspec.json.decode(text, type=Resolve)
    return msgspec.json.decode(text, type=ScopeChange)
