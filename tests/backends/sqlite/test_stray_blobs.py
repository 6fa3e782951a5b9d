"""SQLite keeps a BLOB in any column. One in a row of any table stops nobody else's work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Final

import pytest

from ropewalk.backends.sqlite.library import sqlite
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.domain.limits.fleet_limit import FlowLimit
from ropewalk.domain.limits.quota import Quota
from ropewalk.domain.limits.rate import Rate
from ropewalk.domain.statistics.aggregation import StatsQuery
from ropewalk.domain.time import HOUR
from ropewalk.errors import StoreRefused
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.builders import settlement
from tests.backends.damaging import OnSqlite
from tests.backends.test_damaged_rows import fill_every_table, use_every_table
from tests.backends.test_sqlite import SqliteBackend

TABLES: Final = ("fleet_limit", "quota", "worker", "schedule", "attempt", "edge", "lane")
BLOBS: Final = (b"\xff\x00", b"", b"\x00")


@contextmanager
def file_of(bench: Bench) -> Iterator[sqlite.Connection]:
    assert isinstance(bench.backend, SqliteBackend)
    db = sqlite.connect(bench.backend.path, isolation_level=None)
    try:
        yield db
    finally:
        db.close()


class TestStrayBlobs(OnSqlite):
    @pytest.mark.parametrize("table", TABLES)
    async def test_a_blob_in_a_row_of_another_stops_nobody(self, bench: Bench, table: str) -> None:
        """Each column in turn, in one row that the healthy jobs have nothing to do with."""
        await fill_every_table(bench)
        await bench.add("stray", tenant="stray", queue="stray")
        await bench.store.put_quota(Quota(tenant="stray", pending=5))
        await bench.store.put_limit(FlowLimit(tenant="stray", kind="key", name="k", rate=Rate(9, per=10)))
        owner = "tenant = 'stray'" if table in ("fleet_limit", "quota", "lane") else "1 = 1"
        with file_of(bench) as db:
            found = db.execute(f"SELECT * FROM {table} WHERE {owner} LIMIT 1")
            columns, values = [each[0] for each in found.description], list(found.fetchone())
        for number, (column, blob) in enumerate(product(columns, BLOBS)):
            damaged = [blob if name == column else value for name, value in zip(columns, values, strict=True)]
            with file_of(bench) as db:
                if not _replace(db, table, columns, values, damaged):
                    continue
            await bench.add("b", id=f"healthy-{number}", tenant="healthy")
            await use_every_table(bench)
            await bench.store.stats("stray", StatsQuery(last_us=HOUR))
            claimed = await bench.claim(99, types=["b"])
            assert f"healthy-{number}" in {job.id for job in claimed}, (table, column, blob)
            await bench.settle_all("worker", [settlement(job) for job in claimed])
            with file_of(bench) as db:
                if not _replace(db, table, columns, damaged, values):
                    return  # its work is done, and so the row is gone

    @pytest.mark.parametrize("column", ["last_seq", "epoch", "control"])
    async def test_a_blob_in_the_row_of_numbers_is_refused_by_name(self, bench: Bench, column: str) -> None:
        """Every job needs this row: the error says which row it is and what to do."""
        await bench.add(id="one")
        with file_of(bench) as db:
            db.execute(f"UPDATE meta SET {column} = x'ff00'")
        for _ in range(2):
            with pytest.raises(StoreRefused, match=rf"table meta.*{column}.*repair"):
                await bench.add(id="two")
                await bench.claim(9)

    async def test_a_blob_in_a_quota_of_all_is_damage(self, bench: Bench) -> None:
        """Also one that SQLite takes for a JSON null in its binary form."""
        await bench.store.put_quota(Quota(tenant="*", pending=5))
        await bench.store.put_quota(Quota(tenant=DEFAULT_TENANT, pending=5))
        await self.damage(bench, "quota", "pending", b"\x00", where="tenant = '*'")
        await bench.add()
        assert "quota" in (await bench.store.examine()).work.unreadable


def _replace(
    db: sqlite.Connection, table: str, columns: Sequence[str], before: Sequence[object], after: Sequence[object]
) -> bool:
    changed = ", ".join(f"{name} = ?" for name in columns)
    same = " AND ".join(f"{name} IS ?" for name in columns)
    try:
        return db.execute(f"UPDATE {table} SET {changed} WHERE {same}", (*after, *before)).rowcount == 1
    except sqlite.IntegrityError:
        return False  # this column holds no BLOB
