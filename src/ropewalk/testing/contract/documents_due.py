"""Documents that are due are given out, to one caller at a time, until they are done."""

from __future__ import annotations

import asyncio
from typing import Any

from ropewalk.domain.time import DAY, HOUR, MINUTE, SECOND
from ropewalk.ports.store.capabilities import DOCUMENTS
from ropewalk.ports.store.documents import DocumentWritten
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench
from ropewalk.testing.contract.documents import a_write, read, write


@needs(DOCUMENTS)
class DocumentTakingContract(Contract):
    """live-9: what is due is given out again and again until it is done, and never to two at once."""

    async def test_what_is_due_is_given_out_and_hidden(self, bench: Bench) -> None:
        rev = await write(bench, "a", due_in_us=MINUTE, topic="t", body=b"1")
        await write(bench, "b")
        assert await bench.store.take_documents("k", 9, HOUR) == []
        await bench.runtime.advance(60)
        [taken] = await bench.store.take_documents("k", 9, HOUR)
        assert taken == await read(bench)
        assert (taken.topic, taken.body, taken.rev > rev) == ("t", b"1", True)
        assert (taken.updated_at, taken.due_at) == (bench.runtime.now(), bench.runtime.now() + HOUR)
        assert await bench.store.take_documents("k", 9, HOUR) == []
        await bench.runtime.advance(hours=1)
        assert [each.id for each in await bench.store.take_documents("k", 9, HOUR)] == ["a"]

    async def test_those_first_that_have_been_due_for_longest(self, bench: Bench) -> None:
        for document_id, due_in_us in (("a", 3), ("b", 1), ("c", 2), ("d", 1), ("e", MINUTE)):
            await write(bench, document_id, due_in_us=due_in_us)
        await write(bench, "other", "other", due_in_us=0)
        await bench.runtime.advance(1)
        taken = [[each.id for each in await bench.store.take_documents("k", 2, HOUR)] for _ in range(3)]
        assert taken == [["b", "d"], ["c", "a"], []]

    async def test_whoever_took_too_long_cannot_write_what_somebody_else_took(self, bench: Bench) -> None:
        await write(bench, "a", due_in_us=0)
        [first] = await bench.store.take_documents("k", 1, MINUTE)
        await bench.runtime.advance(60)
        [second] = await bench.store.take_documents("k", 1, MINUTE)
        done: dict[str, Any] = {"due_in_us": None, "body": b"done"}
        assert await bench.store.delete_documents("k", ["a"], revs={"a": first.rev}) == set()
        assert await bench.store.write_documents([a_write(expected_rev=first.rev, **done)]) == [
            DocumentWritten(written=False, rev=second.rev)
        ]
        await write(bench, "a", expected_rev=second.rev, **done)
        await bench.runtime.advance(hours=1)
        assert await bench.store.take_documents("k", 1, MINUTE) == []

    async def test_no_two_get_one_document(self, bench: Bench) -> None:
        await bench.store.write_documents([a_write(f"{number}", due_in_us=0) for number in range(60)])
        stores = [bench, await bench.second(), await bench.second()]
        taken = await asyncio.gather(*(each.store.take_documents("k", 7, HOUR) for each in stores for _ in range(4)))
        taken.append(await bench.store.take_documents("k", 99, HOUR))
        ids = [each.id for together in taken for each in together]
        assert (len(ids), len(set(ids))) == (60, 60)

    async def test_no_document_waits_for_a_clock_that_was_set_back(self, bench: Bench) -> None:
        """They were written, and one was given out, while the clock was a day ahead."""
        bench.runtime.set_clock(ahead_seconds=DAY / SECOND)
        await write(bench, "taken", due_in_us=0, expires_in_us=HOUR)
        await bench.store.take_documents("k", 9, MINUTE)
        await write(bench, "a", due_in_us=2 * MINUTE)
        await write(bench, "b", due_in_us=2 * MINUTE)
        bench.runtime.set_clock(back_seconds=DAY / SECOND)
        await write(bench, "b", body=b"2")
        assert await bench.store.take_documents("k", 9, MINUTE) == []
        assert (await read(bench, "taken")).expires_at == bench.runtime.now() + HOUR
        await bench.runtime.advance(60)
        assert [each.id for each in await bench.store.take_documents("k", 9, MINUTE)] == ["taken"]
        await bench.runtime.advance(60)
        assert [each.id for each in await bench.store.take_documents("k", 9, HOUR)] == ["taken", "a", "b"]
