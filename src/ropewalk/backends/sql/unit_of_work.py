"""The unit of work of a SQL store: one transaction as the rules of workflows see it (backends/workflow).

A read is one statement for many rows, and its objects are remembered: reading a record twice returns the same object.
Writes are collected in books and written together, before a read that could depend on them and at the end of the verb.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ropewalk.backends.sql import steps
from ropewalk.backends.sql.damage import left_out
from ropewalk.backends.sql.graph import EdgeBook, ScopeBook, put_orphan
from ropewalk.backends.sql.jobs import JobBook, Journal
from ropewalk.backends.sql.keys import KeyBook
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.statistics import CounterBook
from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.workflow.unit_of_work import Item, RecordKind, Resolve, UnitOfWork
from ropewalk.domain.jobs.idempotency import KeyRecord
from ropewalk.domain.jobs.record import EventRecord, JobRecord
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.time import Instant
from ropewalk.domain.workflow.dependency import Edge, Ending, ParentKind
from ropewalk.domain.workflow.group_value import Contribution
from ropewalk.domain.workflow.scope import Scope, ScopeChange

_left = msgspec.json.Decoder(list[tuple[str, str]])


class SqlUnitOfWork(UnitOfWork):
    def __init__(self, tx: Tx, lanes: LaneBook, *, wait: bool = True) -> None:
        """With `wait=False`, reading an idempotency key that another transaction has locked raises MustWait."""
        self._tx = tx
        self._jobs = JobBook(tx, lanes)
        self._journal = Journal(tx)
        self._keys = KeyBook(tx, wait=wait)
        self._edges = EdgeBook(tx)
        self._scopes = ScopeBook(tx)
        self.counters = CounterBook(tx, lanes)

    @property
    def now(self) -> Instant:
        return self._tx.now

    def flush(self) -> None:
        for book in (self._jobs, self._journal, self._keys, self._edges, self._scopes, self.counters):
            book.flush()

    def passes_over(self, kind: RecordKind, number: int) -> bool:
        return (kind, number) in self._tx.passed_over

    # ── jobs

    def find(self, tenant: str, ids: Iterable[str]) -> dict[str, JobRecord]:
        return self._jobs.find(tenant, ids)

    def find_shared(self, tenant: str, ids: Iterable[str]) -> dict[str, JobRecord]:
        return self._jobs.find(tenant, ids, shared=True)

    def load(self, seqs: Iterable[int]) -> list[JobRecord]:
        return self._jobs.load(seqs)

    def spawned(self, tenant: str, parent_id: str, keys: Iterable[str]) -> dict[str, JobRecord]:
        return self._jobs.spawned(tenant, parent_id, keys)

    def chain_tail(self, tenant: str, chain_id: str) -> JobRecord | None:
        return self._jobs.chain_tail(tenant, chain_id)

    def number(self, jobs: Sequence[JobRecord]) -> None:
        self._jobs.number(jobs)

    def insert(self, jobs: Sequence[JobRecord]) -> None:
        self._jobs.insert(jobs)

    def take(self, job: JobRecord) -> None:
        self._jobs.take(job)

    def record(self, job: JobRecord, effects: Effects) -> None:
        self._jobs.take(job)
        self._journal.add(effects)
        self.counters.moved(job, effects)
        if job.terminal:
            self._keys.close(job)

    def note(self, job: JobRecord, event: EventRecord) -> None:
        """Records an event of a job that is not a transition."""
        self._jobs.take(job)
        self._journal.add_event(event)

    # ── keys

    def key(self, tenant: str, job_type: str, key: str) -> KeyRecord | None:
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
        self._jobs.note_dependants(parents)

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

    def keep(self, root: int, seq: int, contribution: Contribution) -> None:
        self._scopes.keep(root, seq, contribution)

    # ── later

    def postpone(self, items: Sequence[Item]) -> None:
        rows = [(_kind(item), msgspec.json.encode(item).decode()) for item in items]
        self._tx.run_rows(self._tx.sql.insert_cascade, rows)

    def take_postponed(self, limit: int) -> list[Item]:
        """Removes and returns the oldest postponed items. The caller postpones again what it does not finish."""
        rows = _left.decode(self._tx.value(self._tx.sql.oldest_cascade, (limit,)))
        if rows:
            self._tx.run(self._tx.sql.delete_cascade, (limit,))
        return [item for kind, text in rows if (item := self._item(kind, text)) is not None]

    def _item(self, kind: str, text: str) -> Item | None:
        try:
            return _item(kind, text)
        except msgspec.DecodeError as error:
            if not self._tx.careful:
                raise
            left_out(self._tx, "deferred_work", error)
            return None

    def report_orphan(self, scope: Scope) -> None:
        put_orphan(self._tx, scope)

    def forget_steps(self, job: JobRecord) -> None:
        steps.forget(self._tx, job.seq)


def _kind(item: Item) -> str:
    return "resolve" if isinstance(item, Resolve) else "change"


def _item(kind: str, text: str) -> Item:
    if kind == "resolve":
        return msgspec.json.decode(text, type=Resolve)
    return msgspec.json.decode(text, type=ScopeChange)
