"""Jobs that differ only in id and input are stored from one record, and come back as if each had had its own."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.backends.sql import records, submission
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.domain.jobs.record import NewJob, are_alike, new_record
from ropewalk.ports.store.submission import Accepted, Submission
from tests.backends.sqlite.test_rows import Undone, born, db

__all__ = ["db"]


@given(born, st.lists(st.binary(max_size=20), min_size=1, max_size=5))
def test_alike_jobs_are_stored_as_they_are(db: sqlite.Connection, fields: dict[str, Any], inputs: list[bytes]) -> None:
    jobs = [NewJob(**(fields | {"id": f"job-{at}", "type": "t", "input": data})) for at, data in enumerate(inputs)]
    assert are_alike(jobs)
    check(db, [jobs])


@given(st.lists(st.lists(born, max_size=3), min_size=1, max_size=3))
def test_mixed_jobs_are_stored_as_they_are(db: sqlite.Connection, batches: list[list[dict[str, Any]]]) -> None:
    check(
        db,
        [
            [
                NewJob(**({"id": f"job-{at}-{number}", "type": "t", "input": b""} | fields))
                for number, fields in enumerate(batch)
            ]
            for at, batch in enumerate(batches)
        ],
    )


def test_only_id_and_input_may_differ() -> None:
    one = NewJob(id="1", type="t", input=b"1")
    assert are_alike([one, NewJob(id="2", type="t", input=b"2")])
    assert not are_alike([one, NewJob(id="2", type="t", input=b"1", priority=1)])
    assert not are_alike([one, NewJob(id="2", type="u", input=b"1")])


def check(db: sqlite.Connection, batches: list[list[NewJob]]) -> None:
    with Undone(db) as tx:
        first = tx.value("SELECT last_seq + 1 FROM meta")
        answers = submission.submit(tx, LaneBook(), [Submission(jobs=batch) for batch in batches])
        jobs = [new for batch in batches for new in batch]
        expected = [new_record(new, seq=seq, now=tx.now) for seq, new in enumerate(jobs, first)]
        assert records.load(tx, [job.seq for job in expected]) == expected
        flat = iter(expected)
        assert answers == [[Accepted.of(next(flat), tx.now, duplicate=False) for _ in batch] for batch in batches]
