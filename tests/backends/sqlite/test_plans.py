"""What a claim costs depends on what it gives, not on what else is stored."""

from __future__ import annotations

import re
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ropewalk.backends.sql import submission
from ropewalk.backends.sql.blocks import statements_in
from ropewalk.backends.sql.claim import claim
from ropewalk.backends.sql.claim.cache import ClaimCache
from ropewalk.backends.sql.queries import Query
from ropewalk.backends.sql.tx import Row, SqlValue, Tx, Values
from ropewalk.backends.sqlite import SqliteStore
from ropewalk.backends.sqlite.contiguous_ranges import forms_of
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.backends.sqlite.opening import open_writer
from ropewalk.backends.sqlite.statements import SQL
from ropewalk.backends.sqlite.tx import Tx as SqliteTx
from ropewalk.domain.jobs.states import State
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import HOUR
from ropewalk.ports.store.claims import ClaimRequest
from ropewalk.ports.store.submission import Submission
from ropewalk.runtime.system import SystemRuntime
from ropewalk.testing.contract.builders import claim_request, settlement
from tests.backends.sqlite.conftest import plain, submit

READY = "SEARCH job USING INDEX job_ready"
WAKE = "SEARCH job USING INDEX job_wake"
NEXT = f"{READY} (sublane=? AND (prio_key,time_key)>(?,?))"
BY_AGE = "counter_sums_by_age (span_us=? AND at<?)"
SUM = "SEARCH counter_sums USING INTEGER PRIMARY KEY (rowid=?)"
SUMS = "SEARCH counter_sums USING INDEX counter_sums_of_lane (span_us=? AND lane=?"
ORPHANS = "\n".join(f"SEARCH outbox USING INDEX outbox_due (kind=? AND next_at{bound}?)" for bound in "<>")
BY_NUMBER = "SEARCH job USING INTEGER PRIMARY KEY (rowid=?)"
DOCUMENT = "SEARCH document USING INDEX"
IN_A_ROW = "SEARCH job USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"


@pytest.fixture
def db(path: Path) -> Iterator[sqlite.Connection]:
    db = open_writer(path, allow_weaker_durability=False).db
    yield db
    db.close()


def plan(
    db: sqlite.Connection, sql: str, values: Mapping[str, object] | tuple[object, ...] | None = None, table: str = "job"
) -> str:
    """How a table is reached, one step a line ("COVERING" is left out: newer libraries see it more often)."""
    named = dict.fromkeys(re.findall(r":([a-z]\w*)", sql))
    number = max(map(int, re.findall(r"\?(\d+)", sql)), default=sql.count("?"))
    given = (named or (None,) * number) if values is None else values
    steps = [row[3].replace("COVERING ", "") for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", given)]
    return "\n".join(step for step in steps if f" {table}" in step)


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        (SQL.promote_due, f"{BY_NUMBER}\nSEARCH job USING INDEX job_due (run_at<?)"),
        (SQL.ready_jobs, f"{NEXT}\n{BY_NUMBER}"),
        (SQL.ready_sublanes, f"{READY}\n{READY} (sublane>?)"),
        (SQL.ready_key_sublanes, "\n".join([f"{READY} (sublane>? AND sublane<?)"] * 2)),
        (SQL.claim_snapshot, f"SCAN job USING INDEX job_due\n{WAKE} (wake_at>?)\n{READY}\n{READY} (sublane>?)"),
        (SQL.earliest_expiry, "SEARCH job USING INDEX job_lease (lease_expires_at>?)"),
        (SQL.ready_heads, f"{BY_NUMBER}\nSEARCH head USING INDEX job_ready (sublane=? AND (prio_key,time_key)>(?,?))"),
        (SQL.running_lanes, "SCAN job USING INDEX job_lease"),
        (
            SQL.waiting_of,
            "\n".join(
                (
                    *[f"{READY} (sublane>? AND sublane<?)"] * 2,
                    "SEARCH job USING INDEX job_waiting (lane=?)",
                    "SEARCH job USING INDEX job_waiting (lane>? AND lane<?)",
                )
            ),
        ),
        (SQL.expired_leases, "SEARCH job USING INDEX job_lease (lease_expires_at<?)"),
        (SQL.past_deadline, "SEARCH job USING INDEX job_deadline (deadline>? AND deadline<?)"),
        (SQL.past_retention, "SEARCH job USING INDEX job_finished (status=? AND type=? AND finished_at<?)"),
        (
            SQL.old_results,
            "SEARCH job USING INDEX job_finished (status=? AND type=? AND finished_at>? AND finished_at<?)",
        ),
        (SQL.old_shared_results, "SEARCH job USING INDEX job_shared_result (type=? AND finished_at<?)"),
        (SQL.seq_of_id, "SEARCH job USING INDEX job_by_id (id=? AND tenant=?)"),
        (SQL.load_jobs, BY_NUMBER),
        *((forms_of(block).of_rows, BY_NUMBER) for block in (SQL.lease_jobs, *statements_in(SQL.complete_plain))),
        *((forms_of(block).of_range, IN_A_ROW) for block in (SQL.lease_jobs, *statements_in(SQL.complete_plain))),
        (SQL.held, "SCAN job USING INDEX job_lease"),
        (SQL.renew_leases, BY_NUMBER),
        (SQL.save_jobs, BY_NUMBER),
        (SQL.held_members, BY_NUMBER),
        (SQL.waits_ahead, "SEARCH job USING INDEX job_wait_began (updated_at>?)"),
        (SQL.expired_waits, "SEARCH job USING INDEX job_wake (wake_at>? AND wake_at<?)"),
        (SQL.seqs_of_spawns, "SEARCH job USING INDEX job_by_parent (parent_id=? AND spawn_key=? AND tenant=?)"),
        (SQL.chain_of, "SEARCH job USING INDEX job_by_chain (chain_id=?)"),
    ],
)
def test_every_hot_statement_uses_its_index(db: sqlite.Connection, statement: str, wanted: str) -> None:
    assert plan(db, statement) == wanted


@pytest.mark.parametrize(
    ("statement", "table", "wanted"),
    [
        (SQL.waiting_edges, "edge", "SEARCH edge USING INDEX edge_by_parent (parent=? AND parent_kind=? AND ending=?)"),
        (SQL.ended_edges, "edge", "SEARCH edge USING INDEX edge_by_parent (parent=? AND parent_kind=? AND ending=?)"),
        (SQL.set_ending, "edge", "SEARCH edge USING PRIMARY KEY (seq=? AND position=?)"),
        (SQL.edges_of, "edge", "SEARCH edge USING PRIMARY KEY (seq=?)"),
        (SQL.load_scopes, "scope", "SEARCH scope USING INTEGER PRIMARY KEY (rowid=?)"),
        (SQL.root_of_group, "scope", "SEARCH scope USING INDEX scope_by_group (group_id=? AND tenant=?)"),
        (SQL.last_positions, "contribution", "SEARCH contribution USING PRIMARY KEY (scope=?)"),
        (SQL.close_keys, "key ", "SEARCH key USING PRIMARY KEY (tenant=? AND type=? AND key=?)"),
        (SQL.lines_of, "log", "SEARCH log USING PRIMARY KEY (seq=?)"),
        (SQL.sums_to_fold, "counter_sums", f"{SUMS} AND at=?)"),
        (SQL.lanes_of_types, "lane", "SEARCH lane USING INTEGER PRIMARY KEY (rowid<?)"),
        (SQL.counters_of, "counter_sums", f"{SUMS} AND at>? AND at<?)\n{SUMS})"),
        (SQL.forget_sums, "counter_sums", f"{SUM}\nSEARCH counter_sums USING INDEX {BY_AGE}"),
        (SQL.finished_counts_of, "job", BY_NUMBER),
        (SQL.due_orphans, "outbox", ORPHANS),
        (SQL.lock_documents, "document", f"{DOCUMENT} document_by_id (kind=? AND id=?)"),
        (SQL.documents_named, "document", f"{DOCUMENT} document_by_id (kind=? AND id=?)"),
        (SQL.update_documents, "document", f"{DOCUMENT} document_by_id (kind=? AND id=?)"),
        (SQL.delete_documents, "document", f"{DOCUMENT} document_by_id (kind=? AND id=?)"),
        (SQL.load_documents, "document", "SEARCH document USING INTEGER PRIMARY KEY (rowid=?)"),
        (SQL.hide_documents, "document", "SEARCH document USING INTEGER PRIMARY KEY (rowid=?)"),
        (SQL.documents_of_kind, "document", f"{DOCUMENT} document_of_kind (kind=? AND number>?)"),
        (SQL.newest_documents_of_kind, "document", f"{DOCUMENT} document_of_kind (kind=? AND number<?)"),
        (SQL.documents_of_tenant, "document", f"{DOCUMENT} document_of_tenant (kind=? AND tenant=? AND number>?)"),
        (
            SQL.newest_documents_of_tenant,
            "document",
            f"{DOCUMENT} document_of_tenant (kind=? AND tenant=? AND number<?)",
        ),
        (SQL.documents_of_topic, "document", f"{DOCUMENT} document_of_topic (kind=? AND topic=? AND number>?)"),
        (SQL.newest_documents_of_topic, "document", f"{DOCUMENT} document_of_topic (kind=? AND topic=? AND number<?)"),
        (SQL.count_documents_of_kind, "document", f"{DOCUMENT} document_of_topic (kind=?)"),
        (SQL.count_documents_of_tenant, "document", f"{DOCUMENT} document_of_tenant (kind=? AND tenant=?)"),
        (SQL.count_documents_of_topic, "document", f"{DOCUMENT} document_of_topic (kind=? AND topic=?)"),
        (SQL.bring_documents_nearer, "document", f"{DOCUMENT} document_ahead (kind=? AND updated_at>?)"),
        (SQL.due_documents, "document", f"{DOCUMENT} document_due (kind=? AND due_at<?)"),
        (
            SQL.prune_documents,
            "document",
            f"SEARCH document USING INTEGER PRIMARY KEY (rowid=?)\n{DOCUMENT} document_expiry (expires_at<?)",
        ),
        (SQL.update_schedule, "schedule", "SEARCH schedule USING PRIMARY KEY (tenant=? AND name=?)"),
        (SQL.schedules_named, "schedule", "SEARCH schedule USING PRIMARY KEY (tenant=? AND name=?)"),
        (SQL.schedules_of, "schedule", "SEARCH schedule USING PRIMARY KEY (tenant=? AND name>?)"),
        (SQL.next_schedule, "schedule", "SEARCH schedule USING INDEX schedule_due (next_fire>?)"),
        (
            SQL.due_schedules,
            "schedule",
            "SEARCH schedule USING INDEX schedule_due ((next_fire,tenant,name)>(?,?,?) AND next_fire<?)",
        ),
    ],
)
def test_so_does_what_is_between_jobs(db: sqlite.Connection, statement: str, table: str, wanted: str) -> None:
    assert plan(db, statement, table=table) == wanted


def test_the_backlog_looks_at_what_is_ready_and_due(db: sqlite.Connection) -> None:
    wanted = f"{READY}\n{READY} (sublane>?)\n{READY} (sublane=?)\nSEARCH job USING INDEX job_due (run_at<?)"
    assert plan(db, SQL.backlog, (0, 10)) == wanted


@pytest.mark.parametrize(
    ("wanted", "tenant", "used"),
    [
        (Filter(), "default", "SCAN job"),
        (Filter(), "acme", "SEARCH job USING INDEX job_by_tenant (tenant=?)"),
        (Filter(workflow_id="w"), "acme", "SEARCH job USING INDEX job_by_workflow (workflow_id=?)"),
        (Filter(correlation_id="c"), "default", "SEARCH job USING INDEX job_by_correlation (correlation_id=?)"),
        (Filter(parent_id="p"), "acme", "SEARCH job USING INDEX job_by_parent (parent_id=?)"),
        (Filter(states=(State.RUNNING,)), "default", f"{BY_NUMBER}\nSCAN job USING INDEX job_lease"),
        (Filter(states=(State.COMPLETED,)), "default", "SCAN job"),
        (Filter(states=(State.FAILED,)), "default", "SEARCH job USING INDEX job_finished (status=?)"),
    ],
)
def test_a_search_takes_the_narrowest_way(db: sqlite.Connection, wanted: Filter, tenant: str, used: str) -> None:
    query = Query(SQL, tenant, wanted, now=0)
    assert plan(db, query.page(Order.CREATED_DESC, None, 10), query.values) == used


DUE = "SEARCH job USING INDEX job_due (run_at{}?)"
ENDED = "SEARCH job USING INDEX job_finished (status=?{})"
EVERY_READY = "SCAN job USING INDEX job_ready"
EVERY_LEASE = "SCAN job USING INDEX job_lease"


@pytest.mark.parametrize("limit", [None, 10])
@pytest.mark.parametrize(
    ("wanted", "used"),
    [
        (Filter(), "SCAN job USING INDEX job_by_id"),
        (Filter(workflow_id="w"), "SEARCH job USING INDEX job_by_workflow (workflow_id=?)"),
        (Filter(correlation_id="c"), "SEARCH job USING INDEX job_by_correlation (correlation_id=?)"),
        (Filter(states=(State.SCHEDULED,)), f"{DUE.format('<')}\n{EVERY_READY}"),
        (Filter(states=(State.DELAYED,)), f"{DUE.format('>')}\n{EVERY_READY}"),
        (Filter(states=(State.PENDING,)), f"SCAN job USING INDEX job_waiting\n{EVERY_READY}"),
        (Filter(states=(State.RUNNING,)), EVERY_LEASE),
        (Filter(states=(State.FAILED, State.DEAD_LETTER)), ENDED.format("")),
        (Filter(states=(State.FAILED,), types=("a",)), ENDED.format(" AND type=?")),
        (Filter(states=(State.RETRYING, State.FAILED)), f"{DUE.format('>')}\n{EVERY_READY}\n{ENDED.format('')}"),
        (
            Filter(types=("a",)),
            f"SCAN job USING INDEX job_waiting\n{EVERY_READY}\n{EVERY_LEASE}\n{ENDED.format(' AND type=?')}",
        ),
    ],
)
def test_a_count_takes_the_narrowest_way(db: sqlite.Connection, wanted: Filter, used: str, limit: int | None) -> None:
    query = Query(SQL, "default", wanted, now=0)
    statement = query.count(limit)
    assert plan(db, statement, query.values) == used


@pytest.mark.parametrize("wanted", [Filter(), Filter(queues=("q",)), Filter(states=(State.COMPLETED,))])
def test_a_count_costs_no_more_than_up_to_its_limit(db: sqlite.Connection, wanted: Filter) -> None:
    """Told by the instructions of SQLite's machine: among 20 000 jobs a count up to 100 takes as many as among 200."""
    few = _instructions(db, wanted, jobs=200)
    assert few == pytest.approx(_instructions(db, wanted, jobs=20_000), rel=0.1)


def _instructions(db: sqlite.Connection, wanted: Filter, *, jobs: int) -> int:
    """How many a count up to 100 of so many finished jobs takes."""
    columns = "id, tenant, type, queue, stage, lane, status, priority, prio_key, time_key, created_at, run_at"
    numbers = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT ?)"
    db.execute("DELETE FROM job")
    db.execute(
        f"INSERT INTO job ({columns}, updated_at, flags, max_crashes, format, input) {numbers} "
        "SELECT 'job-' || n, 'default', 't', 'q', 3, 1, 'completed', 0, 0, 0, n, n, n, 0, 3, 1, x'7b7d' FROM n",
        (jobs,),
    )
    query = Query(SQL, "default", wanted, now=0)
    statement, steps = query.count(100), 0

    def step() -> None:
        nonlocal steps
        steps += 1

    db.set_progress_handler(step, 1)
    assert db.execute(statement, query.values).fetchone() == (100,)
    db.set_progress_handler(None, 0)
    return steps


async def test_a_plain_job_is_in_the_index_of_its_place_only(store: SqliteStore) -> None:
    """What a plain job costs: its row, its id, and one entry; three while it is delayed."""
    await submit(store, plain("a"))
    indexes = ({"job_due", "job_waiting", "job_wait_began"}, {"job_ready"}, {"job_lease"}, {"job_finished"})
    for stage, wanted in enumerate(indexes):
        held = await store._writer.ask(partial(_indexes, stage=stage))
        assert held == {"job_by_id", *wanted}


def _indexes(tx: Tx, stage: int) -> set[str]:
    tx.run("UPDATE job SET stage = ?", (stage,))
    names = tx.value("SELECT group_concat(name) FROM sqlite_master WHERE type = 'index' AND tbl_name = 'job'")
    return {name for name in names.split(",") if _entries(tx, name)}


def _entries(tx: Tx, index: str) -> int:
    made: str = tx.value("SELECT sql FROM sqlite_master WHERE name = ?", (index,))
    condition = made.partition(" WHERE ")[2] or "TRUE"
    return int(tx.value(f"SELECT count(*) FROM job INDEXED BY {index} WHERE {condition}"))


async def test_a_claim_does_not_pay_for_finished_and_delayed_jobs(tmp_path: Path) -> None:
    """50 000 of each, and it is within three times of an empty store (really: the same)."""
    stores = {name: SqliteStore(tmp_path / f"{name}.db", SystemRuntime()) for name in ("empty", "full")}
    await _fill(stores["full"])
    spent: dict[str, list[float]] = {name: [] for name in stores}
    for turn in range(7):
        for name, store in stores.items():
            await submit(store, *(plain(f"{turn}-{number}") for number in range(100)))
            started_at = time.perf_counter()
            claimed = await store.claim(claim_request(limit=100))
            spent[name].append(time.perf_counter() - started_at)
            assert len(claimed.jobs) == 100
            await store.settle("worker", [settlement(job) for job in claimed.jobs])
    assert statistics.median(spent["full"]) < 3 * statistics.median(spent["empty"]), spent
    for store in stores.values():
        await store.close()


async def _fill(store: SqliteStore) -> None:
    for start in range(0, 50_000, 5000):
        finished = [plain(f"finished-{start + number}") for number in range(5000)]
        delayed = [plain(f"delayed-{start + number}", delay_us=HOUR, priority=100) for number in range(5000)]
        await store.submit([Submission(jobs=finished), Submission(jobs=delayed)])
        jobs = (await store.claim(claim_request(limit=5000))).jobs
        assert len(jobs) == 5000
        await store.settle("worker", [settlement(job) for job in jobs])


async def test_a_computing_thread_does_not_starve_the_store(store: SqliteStore) -> None:
    """A statement a row would wait 5 ms for the interpreter 3 000 times over: 15 s, instead of half a one."""
    await submit(store, *(plain(f"warm-{number}") for number in range(1000)))
    stop = threading.Event()

    def compute() -> None:
        number = 0
        while not stop.is_set():
            number += 1

    computing = threading.Thread(target=compute)
    computing.start()
    try:
        started_at = time.perf_counter()
        await submit(store, *(plain(f"job-{number}") for number in range(1000)))
        jobs = (await store.claim(claim_request(limit=1000))).jobs
        await store.settle("worker", [settlement(job) for job in jobs])
        spent_seconds = time.perf_counter() - started_at
    finally:
        stop.set()
        computing.join()
    assert len(jobs) == 1000
    assert spent_seconds < 6


class Counting(SqliteTx):
    """Remembers how many ready jobs each statement asked for."""

    __slots__ = ("asked_for",)
    asked_for: list[object]

    def row(self, sql: str, values: Values = ()) -> tuple[Any, ...] | None:
        if sql == SQL.ready_jobs:
            assert not isinstance(values, Mapping)
            self.asked_for.append(values[-1])
        return super().row(sql, values)


def test_last_attempts_that_wait_for_a_slot_are_not_read_in_vain_each_time(db: sqlite.Connection) -> None:
    """They are given only into free slots, however many a claim is for."""
    request = claim_request(types=["t"], limit=300, slots=2)
    assert _asked_for(db, request, max_attempts=1) == [[300], [2, 2], [2, 2]]


def test_nor_is_a_type_that_the_worker_has_little_room_for(db: sqlite.Connection) -> None:
    """What is read at first is what could be given."""
    assert _asked_for(db, claim_request(types=["t"], limit=300, room={"t": 2})) == [[2]] * 3


def _asked_for(db: sqlite.Connection, request: ClaimRequest, **fields: Any) -> list[list[object]]:
    """By each of three claims that give two jobs."""
    tx, cache = Counting(db, 1_000_000), ClaimCache(time.monotonic)
    submission.submit(tx, tx.lanes, [Submission(jobs=[plain(f"job-{number}", **fields) for number in range(400)])])
    asked_for: list[list[object]] = []
    for _ in range(3):
        tx.asked_for = []
        assert len(claim.claim(tx, tx.lanes, cache, request).jobs) == 2
        asked_for.append(tx.asked_for)
    return asked_for


class Writing(SqliteTx):
    """Remembers what is written for many rows at once."""

    __slots__ = ("written",)
    written: list[str]

    def run_rows(self, block: str, rows: Sequence[Row], *rest: SqlValue) -> int:
        self.written.append(block)
        return super().run_rows(block, rows, *rest)


def test_a_claim_over_many_keys_knows_their_lanes_by_their_names(db: sqlite.Connection) -> None:
    """On a connection that submitted none of them: it looks none up by itself, and writes none."""
    jobs = [plain(f"job-{number}", limit_key=f"c:{number}") for number in range(20)]
    submitter, tx = SqliteTx(db, 1_000_000), Writing(db, 1_000_000)
    submission.submit(submitter, submitter.lanes, [Submission(jobs=jobs)])
    tx.written = []
    given = claim.claim(tx, tx.lanes, ClaimCache(time.monotonic), claim_request(types=["t"], limit=20)).jobs
    assert len(given) == 20
    assert SQL.lease_jobs in tx.written
    assert SQL.insert_lanes not in tx.written
