"""Searches and counts use the indexes that there are, with statistics that give the planner a choice."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest

from ropewalk.backends.postgres.connections import settings_in
from ropewalk.backends.postgres.statements import READING
from ropewalk.backends.sql.queries import Query
from ropewalk.domain.jobs.states import State
from ropewalk.domain.search import Filter
from tests.backends.postgres.conftest import OpenStore

pytestmark = pytest.mark.asyncio

JOBS = 20_000
SUBMITTED = f"""
INSERT INTO submitted (seq, max_crashes, id, tenant, type, queue, workflow_id, correlation_id, input)
SELECT
    n, 3, 'job-' || n, 'default', 't' || n % 10, 'q', CASE WHEN n % 50 = 0 THEN 'w' || n / 500 END, 'c' || n, '\\x7b7d'
FROM generate_series(1, {JOBS}) AS n
"""
STAGES = f"""
INSERT INTO job_by_stage (
    seq, sublane, prio_key, time_key, created_at, run_at, updated_at, flags, priority, format, stage, status,
    finished_at
)
SELECT
    n, 2 * (n % 10), 0, n, n, n, n, 0, 0, 1, CASE WHEN n > {JOBS} - 100 THEN n % 3 ELSE 3 END,
    CASE WHEN n > {JOBS} - 100 THEN 'waiting' WHEN n % 200 = 0 THEN 'failed' ELSE 'completed' END, n
FROM generate_series(1, {JOBS}) AS n
"""


async def test_counts_pass_by_no_more_jobs_than_they_must(open_store: OpenStore, url: str) -> None:
    await open_store()
    with psycopg.connect(url.partition("?")[0]) as db:
        _fill(db)
        for wanted in (Filter(), Filter(queues=("q",)), Filter(states=(State.COMPLETED,))):
            query = Query(READING, "default", wanted, now=0)
            passed = _rows(db, query.count(100), query.values)
            assert passed < 2000, f"{passed} rows of {JOBS} were read to count up to 100: {wanted}"
        for wanted, index in (
            (Filter(states=(State.FAILED,)), "finished_in_order"),
            (Filter(workflow_id="w3"), "submitted_by_workflow"),
            (Filter(correlation_id="c3"), "submitted_by_correlation"),
        ):
            query = Query(READING, "default", wanted, now=0)
            for statement in (query.count(None), query.count(10_000)):
                assert f" {index}" in _plan(db, statement, query.values)


def _fill(db: psycopg.Connection[Any]) -> None:
    for name, value in settings_in("jobs", off=("jit",)).items():
        db.execute("SELECT set_config(%s, %s, false)", (name, value))
    db.execute("SET max_parallel_workers_per_gather = 0")
    db.execute(SUBMITTED.encode())
    db.execute(STAGES.encode())
    db.execute("ANALYZE submitted, waiting, ready, running, finished")


def _plan(db: psycopg.Connection[Any], statement: str, values: dict[str, Any], *, run: bool = False) -> str:
    asked = re.sub(r"(?<!:):([a-z]\w*)", r"%(\1)s", statement)
    explained = f"EXPLAIN ({'ANALYZE, TIMING OFF' if run else 'COSTS OFF'}) {asked}"
    return "\n".join(line for (line,) in db.execute(explained.encode(), values).fetchall())


def _rows(db: psycopg.Connection[Any], statement: str, values: dict[str, Any]) -> int:
    """How many rows the statement reads from tables and indexes, those that it leaves out included."""
    plan = _plan(db, statement, values, run=True)
    scans = re.findall(r"Scan.*actual rows=([\d.]+) loops=(\d+)", plan)
    removed = map(int, re.findall(r"Rows Removed by \w+(?: \w+)?: (\d+)", plan))
    return round(sum(float(rows) * int(loops) for rows, loops in scans)) + sum(removed)
