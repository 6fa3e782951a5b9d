"""A record comes back as it went in, whatever is in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ropewalk.backends.sql import records
from ropewalk.backends.sql.claim.cache import BEFORE_ALL
from ropewalk.backends.sql.claim.snapshot import first_of_each, next_of, rank_of
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.backends.sqlite.opening import open_writer
from ropewalk.backends.sqlite.statements import SQL
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.record import (
    CancelRequest,
    CompensatedJob,
    CompensationSpec,
    JobRecord,
    NewJob,
    Progress,
    new_record,
)
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.time import INSTANT_MAX, INSTANT_MIN
from ropewalk.domain.workflow.dependency import Gate

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
maybe_texts = st.none() | texts
numbers = st.integers(-(1 << 63), (1 << 63) - 1)
maybe_numbers = st.none() | numbers
counts = st.integers(0, (1 << 63) - 1)
small_counts = st.integers(0, (1 << 31) - 1)
priorities = st.integers(-(1 << 31), (1 << 31) - 1)
instants = st.integers(INSTANT_MIN, INSTANT_MAX)
maybe_instants = st.none() | instants
errors = st.builds(
    ErrorInfo, category=st.sampled_from(Category), message=st.text(max_size=20), context=st.dictionaries(texts, texts)
)
origins = st.builds(
    CompensatedJob, id=texts, run=numbers, type=texts, input=st.binary(max_size=20), error=errors, started=st.booleans()
)
follow_ups = st.builds(
    CompensationSpec,
    type=texts,
    input=st.none() | st.binary(max_size=20),
    backoff=st.none() | st.just(Backoff.constant(3)),
)
born = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("timeout_us", "lease_us", "max_attempts"), st.none() | counts),
        "deadline": maybe_instants,
        **dict.fromkeys(("correlation_id", "workflow_id", "workflow_type", "group_id"), maybe_texts),
        **dict.fromkeys(("parent_id", "callback_url", "fairness", "trace"), maybe_texts),
        "backoff": st.none() | st.just(Backoff.exponential(2)) | st.just(Backoff()),
        "report_orphan": st.booleans(),
        "tags": st.dictionaries(texts, st.text(max_size=20), max_size=3),
        "on_failure": st.none() | follow_ups,
        "origin": st.none() | origins,
        "input": st.binary(max_size=50),
    },
)
gates = st.builds(
    Gate, total=numbers, need=numbers, of=st.sampled_from(["done", "success"]), policy=st.none() | st.just("skip")
)
lived = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("prio_key", "time_key"), numbers),
        **dict.fromkeys(("run_at", "updated_at"), instants),
        "priority": priorities,
        "rev": small_counts,
        "attempt": counts,
        **dict.fromkeys(("flags", "unmet"), st.integers(0, 5)),
        "wake_at": maybe_instants,
        **dict.fromkeys(("chain_id", "awaits"), maybe_texts),
        "gate": st.none() | gates,
        **dict.fromkeys(("started_at", "finished_at", "lease_expires_at", "deadline"), maybe_instants),
        "status": st.sampled_from(Status),
        "last_move": st.sampled_from(Move),
        "owner": maybe_texts,
        "crashes": st.integers(0, 3),
        "progress": st.none() | st.builds(Progress, st.floats(0, 100), maybe_texts, numbers),
        "error": st.none() | errors,
        "cancel": st.none() | st.builds(CancelRequest, maybe_texts, st.booleans(), numbers),
        **dict.fromkeys(("checkpoint", "result"), st.none() | st.binary(max_size=50)),
    },
)


placed = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("unmet", "depth"), st.integers(0, 5)),
        "scope_id": maybe_numbers,
        "wake_at": maybe_instants,
        "awaits": maybe_texts,
        "gate": st.none() | gates,
    },
)


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite.Connection]:
    path: Path = tmp_path_factory.mktemp("rows") / "jobs.db"
    db = open_writer(path, allow_weaker_durability=False).db
    yield db
    db.close()


@given(st.lists(born, min_size=1, max_size=5))
def test_new_records(db: sqlite.Connection, batch: list[dict[str, Any]]) -> None:
    with Undone(db) as tx:
        jobs = inserted(tx, batch)
        assert records.load(tx, [job.seq for job in jobs]) == jobs


@given(st.lists(st.tuples(born, placed), min_size=1, max_size=5))
def test_new_records_in_their_place(db: sqlite.Connection, batch: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    with Undone(db) as tx:
        jobs = [
            structs.replace(new_record(named(number, new), seq=number, now=tx.now), **place)
            for number, (new, place) in enumerate(batch, 1)
        ]
        records.insert(tx, LaneBook(), jobs)
        assert records.load(tx, [job.seq for job in jobs]) == jobs


@given(born, st.lists(st.binary(max_size=20), min_size=1, max_size=5), st.booleans())
def test_new_records_that_are_alike(
    db: sqlite.Connection, shared: dict[str, Any], inputs: list[bytes], spawned: bool
) -> None:
    with Undone(db) as tx:
        own = [{"input": data, "spawn_key": f"key-{at}" if spawned else None} for at, data in enumerate(inputs)]
        jobs = [new_record(named(number, shared | each), seq=number, now=tx.now) for number, each in enumerate(own, 1)]
        names = ("seq", "id", "input", *(["spawn_key"] if spawned else []))
        records.insert_alike(tx, LaneBook(), jobs[0], {name: [getattr(job, name) for job in jobs] for name in names})
        assert records.load(tx, [job.seq for job in jobs]) == jobs


@given(st.lists(st.tuples(born, lived), min_size=1, max_size=5))
def test_changed_records(db: sqlite.Connection, batch: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    with Undone(db) as tx:
        jobs = inserted(tx, [new for new, _ in batch])
        changed = [
            structs.replace(job, chain_index=job.seq, **fields)  # one place in a chain is one job's
            for job, (_, fields) in zip(jobs, batch, strict=True)
        ]
        records.save(tx, changed)
        assert records.load(tx, [job.seq for job in reversed(jobs)]) == changed[::-1]


def test_a_record_is_saved_only_under_its_fence(db: sqlite.Connection) -> None:
    with Undone(db) as tx:
        [job] = inserted(tx, [{}])
        job.fence += 1
        with pytest.raises(AssertionError, match="0 were still there"):
            records.save(tx, [job])


def test_numbers_are_never_used_twice(db: sqlite.Connection) -> None:
    with Undone(db) as tx:
        jobs = inserted(tx, [{}, {}])
        tx.run("DELETE FROM job")
        assert [job.seq for job in inserted(tx, [{}])] == [jobs[-1].seq + 1]


def test_more_than_fits_into_one_value_is_loaded_in_parts(db: sqlite.Connection) -> None:
    with Undone(db) as tx:
        jobs = inserted(tx, [{"input": bytes([number])} for number in range(9)])
        narrow = Narrow(db)
        loaded = records.load(Tx(narrow, tx.now), [job.seq for job in jobs])  # type: ignore[arg-type]  # stands in for db
        assert loaded == jobs
        assert narrow.refused > 0


def test_ready_jobs_that_do_not_fit_into_one_value_are_read_in_parts(db: sqlite.Connection) -> None:
    with Undone(db) as tx:
        jobs = inserted(tx, [{"input": bytes([number])} for number in range(9)])
        other = inserted(tx, [{"type": "u"}])
        for job in (*jobs, *other):
            job.updated_at = 0  # a claim sets it
        lanes = LaneBook()
        first, second = (2 * lanes.id_of(tx, each[0].lane) for each in (jobs, other))
        narrow = Narrow(db)
        few = Tx(narrow, tx.now)  # type: ignore[arg-type]  # stands in for db
        assert next_of(few, first, BEFORE_ALL, 7) == jobs[:7]
        assert next_of(few, first, rank_of(jobs[6]), 7) == jobs[7:]
        assert narrow.refused > 0
        starts = [(first, BEFORE_ALL), (second, BEFORE_ALL)]
        assert first_of_each(few, starts, 5) == {first: jobs[:5], second: other}


def inserted(tx: Tx, batch: list[dict[str, Any]]) -> list[JobRecord]:
    seqs = tx.take_seqs(len(batch))
    jobs: list[JobRecord] = []
    for seq, fields in zip(seqs, batch, strict=True):
        jobs.append(new_record(named(seq, fields), seq=seq, now=tx.now))
    records.insert(tx, LaneBook(), jobs)
    return jobs


def named(seq: int, fields: dict[str, Any]) -> NewJob:
    return NewJob(**({"id": f"job-{seq}", "type": "t", "input": b""} | fields))


class Undone:
    """A transaction that leaves nothing behind."""

    def __init__(self, db: sqlite.Connection) -> None:
        self._db = db

    def __enter__(self) -> Tx:
        self._db.execute("BEGIN IMMEDIATE")
        return Tx(self._db, 1_000_000)

    def __exit__(self, *_: object) -> None:
        self._db.execute("ROLLBACK")


class Narrow:
    """A connection that refuses to put more than two jobs into one value."""

    def __init__(self, db: sqlite.Connection) -> None:
        self._db = db
        self.refused = 0

    def execute(self, sql: str, values: tuple[str | int, ...]) -> object:
        counts = {SQL.load_jobs: str(values[0]).count(",") + 1, SQL.ready_jobs: values[-1], SQL.ready_heads: values[-1]}
        if int(counts[sql]) > 2:
            self.refused += 1
            raise sqlite.DataError("string or blob too big")
        return self._db.execute(sql, values)
