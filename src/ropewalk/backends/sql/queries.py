"""The verbs that only read. They use a connection of their own, so that a read never waits for a writer, nor a writer
for a read.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Final, TypeVar

import msgspec
from msgspec import structs

from ropewalk.backends.sql import records
from ropewalk.backends.sql.damage import Rows, carefully
from ropewalk.backends.sql.lanes import limits_in, quotas_of
from ropewalk.backends.sql.records import load, records_in
from ropewalk.backends.sql.statements import Statements
from ropewalk.backends.sql.tx import SqlValue, Tx
from ropewalk.domain.jobs.record import DEFAULT_TENANT, RECORD_FORMAT, AttemptRecord, EventRecord, JobRecord
from ropewalk.domain.jobs.states import State
from ropewalk.domain.limits.fleet_limit import LaneName
from ropewalk.domain.schedules.schedule import Plan
from ropewalk.domain.search import (
    STORED_MAX,
    STORED_MIN,
    Filter,
    Order,
    Position,
    decode_cursor,
    encode_cursor,
    position_of,
)
from ropewalk.domain.time import Instant
from ropewalk.ports.store.diagnosis import Backlog, Work
from ropewalk.ports.store.leases import HeldJobs, WorkerCard
from ropewalk.ports.store.reading import Page, QueueInfo, Snapshot, StoredHistory

T = TypeVar("T")

_WAITING_STATES: Final[dict[State, str]] = {
    State.PENDING: "unmet > 0",
    State.SCHEDULED: "unmet = 0 AND run_at <= :now",
    State.RETRYING: "unmet = 0 AND run_at > :now AND last_move = 'retry'",
    State.DELAYED: "unmet = 0 AND run_at > :now AND last_move <> 'retry'",
}
_STATES: Final[dict[State, str]] = {
    **{state: f"stage < 2 AND {condition}" for state, condition in _WAITING_STATES.items()},
    # Few among many: by their own index, instead of walking past everything else.
    State.RUNNING: "seq IN (SELECT seq FROM job WHERE stage = 2)",
    State.COMPLETED: "stage = 3 AND {completed}",
    State.FAILED: "stage = 3 AND status = 'failed'",
    State.DEAD_LETTER: "stage = 3 AND status = 'dead_letter'",
    State.CANCELLED: "stage = 3 AND status = 'cancelled'",
}
_ONE_OF: Final = {
    "types": "type",
    "queues": "queue",
    "priorities": "priority",
    "error_categories": "{error_category}",
    "error_codes": "{error_code}",
}
_COMPARED: Final = {
    "created_after": "created_at > :created_after",
    "created_before": "created_at < :created_before",
    "updated_after": "updated_at > :updated_after",
    "workflow_id": "workflow_id = :workflow_id",
    "group_id": "(group_id = :group_id OR (group_id IS NULL AND id = :group_id))",
    "parent_id": "parent_id = :parent_id",
    "correlation_id": "correlation_id = :correlation_id",
    "text": "(CAST(:text AS text) IN (substr(id, 1, length(CAST(:text AS text))),"
    " substr(type, 1, length(CAST(:text AS text))),"
    " substr(coalesce(idempotency_key, ''), 1, length(CAST(:text AS text))),"
    " substr(coalesce(correlation_id, ''), 1, length(CAST(:text AS text))), {error_code}))",
}
_SELECTIVE: Final = ("workflow_id", "group_id", "parent_id", "correlation_id")
"""Each of these fields has an index of its own, which is better than the index by tenant."""
_ORDERS: Final = {
    Order.CREATED_ASC: ("seq > :after_seq", "seq"),
    Order.CREATED_DESC: ("seq < :after_seq", "seq DESC"),
    Order.UPDATED_DESC: ("(updated_at, seq) < (:after_value, :after_seq)", "updated_at DESC, seq DESC"),
}


class Query:
    """The SQL for the jobs of one tenant that match a filter, as domain.search.matches defines it: one condition for
    each field that the filter sets. The parts that differ between stores come from their statements."""

    def __init__(self, sql: Statements, tenant: str, wanted: Filter, now: Instant) -> None:
        self._sql = sql
        self._parts = {
            "completed": sql.search_completed,
            "error_category": sql.search_error.format(field="category"),
            "error_code": sql.search_error.format(field="code"),
        }
        self.values: dict[str, SqlValue] = {"tenant": tenant, "now": now}
        self._wanted = wanted
        self._where = ["tenant = :tenant"]
        if tenant != DEFAULT_TENANT and not any(getattr(wanted, field) for field in _SELECTIVE):
            self._where.append("tenant <> 'default'")  # lets the index by tenant be used: it leaves out the default one
        for field, column in _ONE_OF.items():
            self._one_of(field, column, getattr(wanted, field))
        for field, condition in _COMPARED.items():
            value = getattr(wanted, field)
            if value is not None:
                self._add(condition, **{field: value})
        for number, (name, value) in enumerate((wanted.tags or {}).items()):
            names = {"name": f"tag_{number}", "value": f"tag_value_{number}"}
            self._add(sql.search_tag.format(**names), **{names["name"]: name, names["value"]: value})

    def count(self, limit: int | None) -> str:
        """Returns the query for the number of jobs, which stops at `limit`.

        It looks at one stage after another, so that each is found by its own indexes.
        """
        found = " UNION ALL ".join(
            f"SELECT 1 AS one FROM job WHERE {self._conditions(stage)}"  # noqa: S608  every condition is one of ours
            for stage in self._stages()
        )
        if limit is None:
            return f"SELECT count(*) FROM ({found or _NOTHING}) AS found"  # noqa: S608  likewise
        self.values["limit"] = limit
        return f"SELECT count(*) FROM ({found or _NOTHING} LIMIT {self._sql.search_limit}) AS found"  # noqa: S608  likewise

    def page(self, order: Order, after: Position | None, limit: int) -> str:
        """Returns the query for the seqs of the next jobs, which it selects as one JSON array."""
        passed, by = _ORDERS[order]
        if after is not None:
            self._add(passed, after_value=after[0], after_seq=after[1])
        self.values["limit"] = limit
        if self._wanted.states is not None:
            self._add(_any_of(f"({_STATES[state]})" for state in self._wanted.states))
        return self._sql.search_page.format(conditions=self._conditions(), order=by)

    def _one_of(self, field: str, column: str, values: tuple[str | int, ...] | None) -> None:
        if values is not None:
            choices = msgspec.json.encode(values).decode()
            self._add(self._sql.search_one_of.format(column=column, field=field), **{field: choices})

    def _add(self, condition: str, **values: SqlValue) -> None:
        self._where.append(condition.format(**self._parts))
        self.values.update(values)

    def _stages(self) -> list[str]:
        """Returns the condition of each stage in which a job may match; one that is always true if all may."""
        states = self._wanted.states
        if states is None:
            by_type = self._sql.search_ended_by_type
            return [*_STAGES, by_type] if by_type and self._wanted.types is not None else ["TRUE"]
        waiting = _any_of(f"({condition})" for state, condition in _WAITING_STATES.items() if state in states)
        ended = [state for state in _FINISHED_STATES if state in states]
        return [
            *(f"{stage} AND {waiting}" for stage in _STAGES[:2] if not _WAITING_STATES.keys().isdisjoint(states)),
            *_STAGES[2:] * (State.RUNNING in states),
            *([_ended(ended)] if ended else []),
        ]

    def _conditions(self, *more: str) -> str:
        return " AND ".join([*more, *self._where])


_STAGES: Final = ("stage = 0", "stage = 1", "stage = 2")
_FINISHED_STATES: Final = (State.COMPLETED, State.FAILED, State.DEAD_LETTER, State.CANCELLED)
"""The states that are stored as they are."""
_NOTHING: Final = "SELECT 1 AS one FROM job WHERE FALSE"


def _ended(states: Iterable[State]) -> str:
    """Returns the condition for jobs that have ended so, in the form that lets the index of finished jobs be used."""
    named = ", ".join(f"'{state.value}'" for state in states)
    return f"stage = 3 AND status IN ({named})"


def _any_of(conditions: Iterable[str]) -> str:
    return f"({' OR '.join(conditions) or 'FALSE'})"


AHEAD_MAX: Final = 10_000
"""The jobs ahead of another one are counted up to this number."""
BACKLOG_MAX: Final = 100_000
"""The backlog of one tenant, queue and type is counted up to this number."""

_ints = msgspec.json.Decoder(list[int])
_names = msgspec.json.Decoder(list[str])
_counts = msgspec.json.Decoder(list[tuple[str, State, int, Instant]])
_backlog = Rows("lane", tuple[str, str, str, int, Instant])
_attempts = Rows("attempt", AttemptRecord)
_events = Rows("event", EventRecord)
_workers = Rows("worker", WorkerCard)
_plans = Rows("schedule", Plan)
_SEQ: Final = attrgetter("seq")


class SqlReading(ABC):
    """The verbs that only read, for every SQL store. Each runs one of the functions below on one consistent view."""

    @abstractmethod
    async def _read(self, work: Callable[[Tx], T]) -> T:
        """Runs work on a consistent view of the store, without locks."""

    async def get(self, tenant: str, ids: Sequence[str]) -> Snapshot:
        return await self._read(lambda tx: get(tx, tenant, ids))

    async def search(self, tenant: str, wanted: Filter, *, order: Order, cursor: str | None, limit: int) -> Page:
        return await self._read(lambda tx: search(tx, tenant, wanted, order=order, cursor=cursor, limit=limit))

    async def count(self, tenant: str, wanted: Filter, *, limit: int | None = None) -> int:
        return await self._read(lambda tx: count(tx, tenant, wanted, limit))

    async def history(self, tenant: str, job_id: str) -> StoredHistory | None:
        return await self._read(lambda tx: history(tx, tenant, job_id))

    async def queues(self, tenant: str) -> list[QueueInfo]:
        return await self._read(lambda tx: queues(tx, tenant))

    async def backlog(self) -> list[Backlog]:
        return await self._read(backlog)

    async def damage_of(self, job: JobRecord) -> Sequence[str]:
        return await self._read(lambda tx: damage_of(tx, job))

    async def ahead_of(self, job: JobRecord) -> int:
        return await self._read(lambda tx: ahead_of(tx, job))

    async def workers(self) -> list[WorkerCard]:
        return await self._read(workers)

    async def held(self, owner: str) -> HeldJobs:
        return await self._read(lambda tx: held(tx, owner))


def get(tx: Tx, tenant: str, ids: Sequence[str]) -> Snapshot:
    return Snapshot(now=tx.now, jobs={job.id: job for job in records.find_all(tx, tenant, dict.fromkeys(ids))})


def search(tx: Tx, tenant: str, wanted: Filter, *, order: Order, cursor: str | None, limit: int) -> Page:
    after = None if cursor is None else decode_cursor(cursor, order)
    query = Query(tx.sql, tenant, wanted, tx.now)
    found = _ints.decode(tx.value(query.page(order, after, limit + 1), query.values))
    more = len(found) > limit
    jobs = load(tx, found[:limit])
    return Page(now=tx.now, jobs=jobs, next_cursor=_cursor_behind(tx, jobs[-1], order) if more and jobs else None)


def _cursor_behind(tx: Tx, last: JobRecord, order: Order) -> str | None:
    """Returns where the next page begins, from the stored values: a record has a stand-in for an instant that is junk.

    A cursor cannot express some kinds of junk. Text comes behind all numbers, so the next page begins at the last
    number; for a fraction it begins at the integer below. So damaged rows may be missing from the pages, but no healthy
    row is.
    """
    if order is not Order.UPDATED_DESC or "updated_at" not in last.damaged:
        return encode_cursor(order, position_of(last, order))
    found = tx.row(tx.sql.one_job.format(columns=tx.sql.one_column.format(column="updated_at")), (last.seq,))
    assert found is not None, f"job {last.id} is there"
    match found[2]:
        case int(stored):
            return encode_cursor(order, (stored, last.seq))
        case float(stored) if stored < STORED_MIN:
            return None
        case float(stored) if stored < STORED_MAX:
            return encode_cursor(order, (math.floor(stored), STORED_MAX))
        case _:
            return encode_cursor(order, (STORED_MAX, STORED_MAX))


def count(tx: Tx, tenant: str, wanted: Filter, limit: int | None) -> int:
    query = Query(tx.sql, tenant, wanted, tx.now)
    found: int = tx.value(query.count(limit), query.values)
    return found


def history(tx: Tx, tenant: str, job_id: str) -> StoredHistory | None:
    job = records.find(tx, tenant, job_id)
    if job is None:
        return None
    attempts = _attempts.decode(tx, tx.value(tx.sql.attempts_of, (job.seq,)))
    events = _events.decode(tx, tx.value(tx.sql.events_of, (job.seq,)))
    return StoredHistory(now=tx.now, job=job, attempts=attempts, events=events)


def queues(tx: Tx, tenant: str) -> list[QueueInfo]:
    counts: dict[str, dict[State, int]] = {}
    oldest: dict[str, Instant] = {}
    for queue, state, jobs, run_at in _counts.decode(tx.value(tx.sql.live_counts, (tenant, tx.now))):
        counts.setdefault(queue, {})[state] = jobs
        if state is State.SCHEDULED:
            oldest[queue] = run_at
    paused = set(_names.decode(tx.value(tx.sql.paused_queues, (tenant,))))
    return [
        QueueInfo(name=name, paused=name in paused, counts=counts.get(name, {}), oldest_ready_at=oldest.get(name))
        for name in sorted(counts.keys() | paused)
    ]


def backlog(tx: Tx) -> list[Backlog]:
    """Returns how many jobs are ready in each lane, and since when."""
    ready: dict[LaneName, tuple[int, Instant]] = {}
    for tenant, queue, job_type, jobs, oldest in _backlog.decode(tx, tx.value(tx.sql.backlog, (tx.now, BACKLOG_MAX))):
        lane = LaneName(tenant, queue, job_type, "")
        count, first = ready.get(lane, (0, oldest))
        ready[lane] = count + jobs, min(first, oldest)
    return [Backlog(lane=lane, ready=count, oldest_ready_at=oldest) for lane, (count, oldest) in sorted(ready.items())]


def damage_of(tx: Tx, job: JobRecord) -> Sequence[str]:
    """Returns the columns of a job that cannot be read."""
    with carefully(tx, None):
        return next((found.damaged for found in load(tx, [job.seq])), ())


def ahead_of(tx: Tx, job: JobRecord) -> int:
    """Returns how many ready jobs of the same queue come before this one."""
    rank = (job.prio_key, job.time_key, job.seq)
    ahead: int = tx.value(tx.sql.ahead_of, (job.tenant, job.queue, *rank, tx.now, AHEAD_MAX))
    return ahead


def workers(tx: Tx) -> list[WorkerCard]:
    return _workers.decode(tx, tx.value(tx.sql.workers))


def held(tx: Tx, owner: str) -> HeldJobs:
    found = tx.row(tx.sql.held, (owner,))
    assert found is not None
    jobs = sorted(records_in(tx, found[1:]), key=_SEQ)
    for job in jobs:  # a careful transaction has read them whole
        job.input, job.checkpoint, job.result = b"", None, None
    card = next(iter(_workers.decode(tx, found[0])), None)
    return HeldJobs(now=tx.now, card=None if card is None else structs.replace(card, held=len(jobs)), jobs=jobs)


def change_marks(tx: Tx) -> tuple[int, int]:
    """Returns the two numbers by which a watcher sees changes of the store (sqlite/listening.py)."""
    found = tx.row(tx.sql.change_marks)
    assert found is not None
    return found[0], found[1]


_lines = msgspec.json.Decoder(list[tuple[str, str]])
_counts_of_all_tenants = msgspec.json.Decoder(dict[str, int])


def open_work(tx: Tx) -> Work:
    """Returns the facts about open work of all tenants, for an examination."""
    over = tx.row(tx.sql.leases_over, (tx.now,))
    assert over is not None
    _read_small_tables(tx)
    return Work(
        backlog=backlog(tx),
        paused=sorted(_lines.decode(tx.value(tx.sql.all_paused))),
        leases_over=over[0],
        oldest_lease_over_at=over[1],
        newer_records=tx.value(tx.sql.newer_records, (RECORD_FORMAT,)),
        dead_letters=_counts_of_all_tenants.decode(tx.value(tx.sql.dead_letters)),
        set_aside=tx.value(tx.sql.jobs_set_aside),
        unreadable=sorted(tx.left_out),
    )


def _read_small_tables(tx: Tx) -> None:
    """Reads the small tables, so that `left_out` names those with rows that cannot be read."""
    _plans.decode(tx, tx.value(tx.sql.all_plans))
    workers(tx)
    limits_in(tx, tx.value(tx.sql.all_limits))
    quotas_of(tx)
