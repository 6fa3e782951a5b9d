"""What no verb shows of documents: which rows are there, and what becomes of those that cannot be read."""

from __future__ import annotations

from abc import ABC, abstractmethod

import psycopg
import pytest

from ropewalk.backends.sqlite.library import sqlite
from ropewalk.domain.retention import Retention
from ropewalk.domain.time import MINUTE
from ropewalk.errors import StoreRefused
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.documents import a_write, listed, read
from tests.backends.damaging import Damaging, OnPostgres, OnSqlite
from tests.backends.postgres.backend import PostgresBackend
from tests.backends.test_sqlite import SqliteBackend


class DocumentRows(Damaging, ABC):
    @abstractmethod
    async def rows(self, bench: Bench) -> int:
        """How many documents are stored."""

    async def test_what_has_expired_is_pruned(self, bench: Bench) -> None:
        """No more at once than the limit says, and nothing else."""
        writes = [a_write(f"{number}", expires_in_us=MINUTE) for number in range(5)]
        await bench.store.write_documents([*writes, a_write("a"), a_write("b", expires_in_us=2 * MINUTE)])
        await bench.store.prune(Retention(), 99)
        assert await self.rows(bench) == 7
        await bench.runtime.advance(60)
        await bench.store.prune(Retention(), 3)
        assert await self.rows(bench) == 4
        await bench.store.prune(Retention(), 3)
        assert await self.rows(bench) == 2
        assert await listed(bench) == ["a", "b"]

    async def test_a_document_that_cannot_be_read_is_left_out(self, bench: Bench) -> None:
        """The others keep their bodies, and what is due is given out."""
        await bench.store.write_documents([a_write(each, body=each.encode(), due_in_us=0) for each in "abc"])
        await self.damage(bench, "document", "created_at", 1 << 62, where="id = 'b'")
        for _ in range(2):
            found = await bench.store.read_documents("k", ["a", "b", "c"])
            assert {each.id: each.body for each in found.values()} == {"a": b"a", "c": b"c"}
            page = await bench.store.list_documents("k", limit=9)
            assert [each.body for each in page.documents] == [b"a", b"c"]
        taken = await bench.store.take_documents("k", 9, MINUTE)
        assert [each.id for each in taken] == ["a", "c"]

    async def test_a_write_to_a_document_that_cannot_be_read_is_refused_by_name(self, bench: Bench) -> None:
        await bench.store.write_documents([a_write(each) for each in "ab"])
        await self.damage(bench, "document", "updated_at", 1 << 62, where="id = 'b'")
        with pytest.raises(StoreRefused, match=r"k 'b'.*repair or delete its row in table document"):
            await bench.store.write_documents([a_write("a", body=b"2"), a_write("b", body=b"2")])
        assert (await read(bench, "a")).body == b"{}"


class TestDocumentRowsOnSqlite(DocumentRows, OnSqlite):
    async def rows(self, bench: Bench) -> int:
        assert isinstance(bench.backend, SqliteBackend)
        db = sqlite.connect(bench.backend.path)
        try:
            [count] = db.execute("SELECT count(*) FROM document").fetchone()
        finally:
            db.close()
        return int(count)

    @pytest.mark.parametrize("column", ["rev", "tenant", "topic", "created_at", "due_at", "body"])
    @pytest.mark.parametrize("junk", ["j\xfcnk", b"\xff\x00", 1.5])
    async def test_junk_in_any_column_stops_nobody(self, bench: Bench, column: str, junk: str | bytes | float) -> None:
        await bench.store.write_documents([a_write(each, body=each.encode()) for each in "abc"])
        await self.damage(bench, "document", column, junk, where="id = 'b'")
        found = await bench.store.read_documents("k", ["a", "b", "c"])
        assert (found["a"].body, found["c"].body) == (b"a", b"c")


class TestDocumentRowsOnPostgres(DocumentRows, OnPostgres):
    async def rows(self, bench: Bench) -> int:
        assert isinstance(bench.backend, PostgresBackend)
        async with await psycopg.AsyncConnection.connect(bench.backend.url) as db:
            found = await db.execute(f"SELECT count(*) FROM {bench.backend.schema}.document".encode())
            row = await found.fetchone()
        assert row is not None
        return int(row[0])
