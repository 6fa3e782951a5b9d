"""Every list of the columns of a job is made from JobRecord, so that a new field is in all of them."""

from __future__ import annotations

from itertools import chain

import pytest

from ropewalk.backends.postgres.statements import SQL as POSTGRES
from ropewalk.backends.sql import columns
from ropewalk.backends.sql.columns import COLUMNS, HEAD, INSERTED_ALWAYS, INSERTED_IF_USED, OTHERS, PLACE
from ropewalk.backends.sql.statements import Statements
from ropewalk.backends.sqlite.statements import SQL as SQLITE
from ropewalk.domain.jobs.record import JobRecord

BYTES = ("input", "checkpoint", "result")
"""Their sizes and the bytes themselves are read beside the rest."""


def test_each_field_is_read_once() -> None:
    lists = [HEAD, OTHERS, PLACE, BYTES[1:]]
    assert sorted(chain(*lists)) == sorted(COLUMNS)
    assert {*COLUMNS, "damaged"} == {*JobRecord.__struct_fields__}


def test_the_head_is_what_a_record_is_decoded_from() -> None:
    assert JobRecord.__struct_fields__[: len(HEAD)] == HEAD


def test_a_new_job_is_inserted_with_all_that_is_not_set_later() -> None:
    assert sorted([*INSERTED_ALWAYS, *INSERTED_IF_USED, "input"]) == sorted({*COLUMNS} - columns._SET_LATER)


@pytest.mark.parametrize("named", [columns._SET_LATER, columns._CHANGING, PLACE, columns.AS_READY])
def test_only_columns_are_named(named: tuple[str, ...]) -> None:
    assert {*named} <= {*COLUMNS}


@pytest.mark.parametrize("statements", [SQLITE, POSTGRES], ids=["sqlite", "postgres"])
def test_whoever_reads_a_job_reads_all_columns(statements: Statements) -> None:
    for statement in (statements.load_jobs, statements.ready_jobs, statements.ready_heads):
        missing = [name for name in OTHERS if f"'{name}'" not in statement]
        assert not missing
