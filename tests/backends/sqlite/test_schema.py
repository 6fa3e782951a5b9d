"""The schema that the migrations make is the one written down beside this file.

After a migration was added: ROPEWALK_WRITE_SNAPSHOT=1 pytest tests/backends/sqlite/test_schema.py, and read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

from ropewalk.backends.sql.records import Extras
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.backends.sqlite.opening import APPLICATION_ID, open_writer
from ropewalk.domain.jobs.record import JobRecord

SNAPSHOT = Path(__file__).with_name("schema.sql")


def opened(path: Path) -> sqlite.Connection:
    return open_writer(path, allow_weaker_durability=False).db


def test_migrated_from_zero_is_the_snapshot(path: Path) -> None:
    db = opened(path)
    rows = db.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name"
    ).fetchall()
    assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    db.close()
    schema = "".join(f"{sql.strip()};\n\n" for (sql,) in rows)
    if os.environ.get("ROPEWALK_WRITE_SNAPSHOT"):
        SNAPSHOT.write_text(schema)
    assert schema == SNAPSHOT.read_text()


def test_opening_again_changes_nothing(path: Path) -> None:
    opened(path).close()
    before = path.read_bytes()
    opened(path).close()
    assert path.read_bytes() == before


def test_every_field_of_a_record_has_its_column(path: Path) -> None:
    db = opened(path)
    columns = {name for _, name, *_ in db.execute("PRAGMA table_info(job)")}
    db.close()
    read_from_the_others = {"damaged"}
    assert columns == {*JobRecord.__struct_fields__, "stage", "lane"} - read_from_the_others


def test_what_most_jobs_do_not_have_is_optional_in_the_record() -> None:
    bytes_columns = {"checkpoint_bytes", "result_bytes"}
    assert {*Extras.__struct_fields__} - bytes_columns <= {*JobRecord.__struct_fields__}
