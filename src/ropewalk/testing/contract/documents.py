"""The records that a service keeps beside the jobs: written by comparison, listed in order, and given out when due."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ropewalk.domain.retention import Retention
from ropewalk.domain.time import DAY, HOUR, MINUTE, SECOND
from ropewalk.errors import InvalidInput, LimitExceeded
from ropewalk.ports.store.capabilities import DOCUMENTS
from ropewalk.ports.store.documents import BODY_BYTES_MAX, Document, DocumentWrite, DocumentWritten
from ropewalk.testing.contract.base import Contract, needs
from ropewalk.testing.contract.bench import Bench


def a_write(document_id: str = "a", kind: str = "k", **fields: Any) -> DocumentWrite:
    """A write of a document that is like any other, unless a field says something else."""
    plain: dict[str, Any] = {"tenant": "default", "body": b"{}"}
    return DocumentWrite(kind=kind, id=document_id, **(plain | fields))


async def write(bench: Bench, document_id: str = "a", kind: str = "k", **fields: Any) -> int:
    """Writes one document; its rev."""
    [answer] = await bench.store.write_documents([a_write(document_id, kind, **fields)])
    assert answer.written
    return answer.rev


async def find(bench: Bench, document_id: str = "a", kind: str = "k") -> Document | None:
    return (await bench.store.read_documents(kind, [document_id])).get(document_id)


async def read(bench: Bench, document_id: str = "a", kind: str = "k") -> Document:
    found = await find(bench, document_id, kind)
    assert found is not None, f"no document {document_id}"
    return found


async def listed(bench: Bench, kind: str = "k", **how: Any) -> list[str]:
    """The ids of a whole list, read two by two."""
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = await bench.store.list_documents(kind, cursor=cursor, limit=2, **how)
        assert page.now == bench.runtime.now()
        ids += [document.id for document in page.documents]
        cursor = page.next_cursor
        if cursor is None:
            return ids
        assert len(page.documents) == 2, "only the last page may be short"


@needs(DOCUMENTS)
class DocumentContract(Contract):
    """safe-19: a document is what its last write made of it, and a write that expected another rev changes nothing."""

    async def test_a_document_is_read_as_it_was_written(self, bench: Bench) -> None:
        body = bytes(range(256)) * 3
        rev = await write(bench, "a", tenant="acme", topic="t", body=body, due_in_us=MINUTE, expires_in_us=HOUR)
        now = bench.runtime.now()
        assert await read(bench) == Document(
            kind="k",
            id="a",
            tenant="acme",
            topic="t",
            rev=rev,
            created_at=now,
            updated_at=now,
            due_at=now + MINUTE,
            expires_at=now + HOUR,
            body=body,
        )
        other = await bench.second()
        assert await read(other) == await read(bench)

    async def test_a_new_document_is_neither_due_nor_does_it_expire(self, bench: Bench) -> None:
        await write(bench, "a")
        await write(bench, "b", due_in_us=None, expires_in_us=None)
        for document_id in "ab":
            document = await read(bench, document_id)
            assert (document.topic, document.due_at, document.expires_at) == ("", None, None)

    @pytest.mark.parametrize("body", [b"", b"\x00", b"\xff\xfe", b'{"a": "\xc3\xa9"}', b"x" * BODY_BYTES_MAX])
    async def test_every_body_is_kept_byte_for_byte(self, bench: Bench, body: bytes) -> None:
        await bench.store.write_documents([a_write("a", body=b"1"), a_write("b", body=body), a_write("c", body=b"2")])
        found = await bench.store.read_documents("k", ["c", "b", "a"])
        assert (found["a"].body, found["b"].body == body, found["c"].body) == (b"1", True, b"2")

    async def test_more_bytes_than_fit_one_value_are_read(self, bench: Bench) -> None:
        """Large ones between small ones: a store may have to read them in pieces."""
        sizes = [1, BODY_BYTES_MAX // 2, 1, BODY_BYTES_MAX // 2, BODY_BYTES_MAX // 2, 1]
        bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
        await bench.store.write_documents([a_write(f"{number}", body=body) for number, body in enumerate(bodies)])
        page = await bench.store.list_documents("k", limit=99)
        assert [len(each.body) for each in page.documents] == sizes
        assert all(each.body == body for each, body in zip(page.documents, bodies, strict=True))

    async def test_the_longest_names_are_kept(self, bench: Bench) -> None:
        for name in ("\N{ROCKET}" * 160, "x" * 640):
            await write(bench, name, kind=name, tenant=name, topic=name)
            assert (await read(bench, name, kind=name)).tenant == name
            assert await listed(bench, name, tenant=name) == [name]
            assert await listed(bench, name, topic=name) == [name]

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("kind", ""),
            ("kind", "x" * 641),
            ("id", "\N{ROCKET}" * 161),
            ("id", "a\x00b"),
            ("tenant", ""),
            ("topic", "x" * 641),
            ("topic", "\ud800"),
            ("body", b"x" * (BODY_BYTES_MAX + 1)),
            ("due_in_us", -1),
            ("expires_in_us", 36_526 * DAY),
            ("expected_rev", -1),
        ],
    )
    async def test_what_no_store_keeps_is_refused_by_name(self, bench: Bench, field: str, value: object) -> None:
        given: dict[str, Any] = {"kind": "k", "id": "a", "tenant": "default", "body": b"{}", field: value}
        with pytest.raises((InvalidInput, LimitExceeded)) as caught:
            await bench.store.write_documents([DocumentWrite(**given)])
        assert caught.value.field == field

    async def test_kind_and_id_name_one_document(self, bench: Bench) -> None:
        await write(bench, "a", "k", body=b"1")
        await write(bench, "a", "other", body=b"2")
        await write(bench, "a", "k", body=b"3", tenant="acme")
        assert (await read(bench, "a", "k")).body == b"3"
        assert (await read(bench, "a", "other")).body == b"2"
        assert await bench.store.read_documents("k", ["b", "a", "a", "missing"]) == {"a": await read(bench)}
        assert await bench.store.read_documents("k", []) == {}

    async def test_an_overwrite_keeps_what_it_does_not_name(self, bench: Bench) -> None:
        await write(bench, "a", due_in_us=MINUTE, expires_in_us=HOUR, topic="t")
        first = await read(bench)
        await bench.runtime.advance(7)
        rev = await write(bench, "a", tenant="acme", body=b"2")
        second = await read(bench)
        assert (second.tenant, second.topic, second.body, second.rev) == ("acme", "", b"2", rev)
        assert second.rev > first.rev
        assert (second.created_at, second.updated_at) == (first.created_at, first.created_at + 7 * SECOND)
        assert (second.due_at, second.expires_at) == (first.due_at, first.expires_at)
        await write(bench, "a", due_in_us=HOUR, expires_in_us=None)
        third = await read(bench)
        assert (third.due_at, third.expires_at) == (bench.runtime.now() + HOUR, None)
        await write(bench, "a", due_in_us=None, expires_in_us=DAY)
        fourth = await read(bench)
        assert (fourth.due_at, fourth.expires_at) == (None, bench.runtime.now() + DAY)

    async def test_a_write_that_expects_another_rev_changes_nothing(self, bench: Bench) -> None:
        missing = await bench.store.write_documents([a_write("a", expected_rev=7)])
        assert missing == [DocumentWritten(written=False, rev=0)]
        assert await find(bench) is None
        first = await write(bench, "a", expected_rev=0)
        assert await bench.store.write_documents([a_write("a", expected_rev=0, body=b"no")]) == [
            DocumentWritten(written=False, rev=first)
        ]
        second = await write(bench, "a", expected_rev=first, body=b"2")
        for stale in (first, second + 1):
            assert await bench.store.write_documents([a_write("a", expected_rev=stale, body=b"no")]) == [
                DocumentWritten(written=False, rev=second)
            ]
        assert (await read(bench)).body == b"2"

    async def test_writes_of_one_call_are_independent_and_see_those_before_them(self, bench: Bench) -> None:
        rev = await write(bench, "a")
        answers = await bench.store.write_documents(
            [
                a_write("b", expected_rev=0, body=b"b1"),
                a_write("a", expected_rev=rev + 99, body=b"no"),
                a_write("b", expected_rev=0, body=b"no"),
                a_write("c", body=b"c1"),
                a_write("c", body=b"c2"),
            ]
        )
        assert [answer.written for answer in answers] == [True, False, False, True, True]
        assert (answers[1].rev, answers[2].rev) == (rev, answers[0].rev)
        found = await bench.store.read_documents("k", ["a", "b", "c"])
        assert [found[each].body for each in "abc"] == [b"{}", b"b1", b"c2"]
        assert await listed(bench) == ["a", "b", "c"]
        assert await bench.store.write_documents([]) == []

    async def test_a_rev_is_never_used_again(self, bench: Bench) -> None:
        """Whoever read a document before it was deleted does not overwrite the one that was made anew."""
        revs = [await write(bench) for _ in range(3)]
        await bench.store.delete_documents("k", ["a"])
        revs.append(await write(bench))
        await bench.store.take_documents("k", 9, MINUTE)
        await write(bench, "a", due_in_us=0)
        revs += [(await read(bench)).rev]
        [taken] = await bench.store.take_documents("k", 9, MINUTE)
        revs.append(taken.rev)
        assert sorted(set(revs)) == revs
        assert not (await bench.store.write_documents([a_write(expected_rev=revs[0])]))[0].written

    async def test_of_many_who_write_over_the_same_rev_one_does(self, bench: Bench) -> None:
        """First they all create the documents, then they all overwrite them, in several rounds."""
        stores = [bench, await bench.second(), await bench.second()]
        revs = [0] * 20
        for _ in range(5):
            writes = [a_write(f"{number}", expected_rev=rev) for number, rev in enumerate(revs)]
            answers = await asyncio.gather(*(each.store.write_documents(writes) for each in stores))
            for number, together in enumerate(zip(*answers, strict=True)):
                [winner] = [answer for answer in together if answer.written]
                assert {answer.rev for answer in together} == {winner.rev}
                revs[number] = winner.rev

    async def test_no_update_is_lost(self, bench: Bench) -> None:
        """Each of several writers adds one, and begins again where somebody else was first."""
        stores = [bench, await bench.second(), await bench.second()]
        await write(bench, "a", body=b"0")

        async def add_one(each: Bench) -> None:
            while True:
                before = await read(each)
                after = a_write("a", body=str(int(before.body) + 1).encode(), expected_rev=before.rev)
                [answer] = await each.store.write_documents([after])
                if answer.written:
                    return

        await asyncio.gather(*(add_one(each) for each in stores for _ in range(5)))
        assert (await read(bench)).body == b"15"

    async def test_who_creates_without_a_condition_is_never_refused(self, bench: Bench) -> None:
        stores = [bench, await bench.second(), await bench.second()]
        answers = await asyncio.gather(
            *(each.store.write_documents([a_write("a"), a_write("b")]) for each in stores for _ in range(3))
        )
        assert all(answer.written for both in answers for answer in both)
        assert await listed(bench) == ["a", "b"]

    async def test_deleting_answers_what_was_there(self, bench: Bench) -> None:
        revs = {each: await write(bench, each) for each in "abcd"}
        await write(bench, "a", "other")
        given = {"a": revs["a"], "b": revs["a"], "missing": 1}
        assert await bench.store.delete_documents("k", ["a", "b", "c", "missing"], revs=given) == {"a", "c"}
        assert await listed(bench) == ["b", "d"]
        assert await bench.store.delete_documents("k", ["a", "b", "c"]) == {"b"}
        assert await bench.store.delete_documents("k", []) == set()
        assert await listed(bench, "other") == ["a"]

    async def test_what_has_expired_does_not_exist(self, bench: Bench) -> None:
        """At once, before anything is pruned, for every verb."""
        await write(bench, "a", expires_in_us=MINUTE, due_in_us=0)
        await write(bench, "b")
        await bench.runtime.advance(59)
        assert await find(bench) is not None
        await bench.runtime.advance(1)
        for _ in range(2):
            assert await find(bench) is None
            assert await listed(bench) == ["b"]
            assert await bench.store.count_documents("k", limit=9) == 1
            assert await bench.store.take_documents("k", 9, MINUTE) == []
            assert await bench.store.delete_documents("k", ["a"]) == set()
            [refused] = await bench.store.write_documents([a_write(expected_rev=1)])
            assert refused == DocumentWritten(written=False, rev=0)
            await bench.store.prune(Retention(), 99)
        assert await listed(bench) == ["b"]

    async def test_what_is_written_over_an_expired_document_is_new(self, bench: Bench) -> None:
        old = await write(bench, "a", expires_in_us=MINUTE, due_in_us=HOUR)
        await write(bench, "b")
        await bench.runtime.advance(60)
        assert await write(bench, "a", expected_rev=0) > old
        document = await read(bench)
        assert (document.created_at, document.due_at, document.expires_at) == (bench.runtime.now(), None, None)
        assert await listed(bench) == ["b", "a"]
        await bench.store.prune(Retention(), 99)
        assert await listed(bench) == ["b", "a"]


@needs(DOCUMENTS)
class DocumentListContract(Contract):
    """B1: documents are listed in the order in which they were created, whatever happens to them later."""

    async def test_a_list_is_in_order_of_creation(self, bench: Bench) -> None:
        await bench.store.write_documents([a_write(each) for each in "cab"])
        await bench.runtime.advance(1)
        await bench.store.write_documents([a_write(each) for each in "edb"])
        await write(bench, "x", "other")
        assert await listed(bench) == ["c", "a", "b", "e", "d"]
        assert await listed(bench, newest_first=True) == ["d", "e", "b", "a", "c"]
        assert await listed(bench, "missing") == []

    async def test_a_list_of_one_tenant_or_topic(self, bench: Bench) -> None:
        await write(bench, "a", tenant="acme", topic="t")
        await write(bench, "b", tenant="acme", topic="u")
        await write(bench, "c", tenant="other", topic="t")
        await write(bench, "d", tenant="other")
        await write(bench, "e", tenant="acme", topic="t")
        await write(bench, "f", "other", tenant="acme", topic="t")
        for how, wanted in (
            ({"tenant": "acme"}, "abe"),
            ({"topic": "t"}, "ace"),
            ({"topic": ""}, "d"),
            ({"tenant": "acme", "topic": "t"}, "ae"),
            ({"tenant": "missing"}, ""),
            ({}, "abcde"),
        ):
            assert await listed(bench, **how) == list(wanted)
            assert await listed(bench, newest_first=True, **how) == list(reversed(wanted))
            assert await bench.store.count_documents("k", limit=9, **how) == len(wanted)
            assert await bench.store.count_documents("k", limit=2, **how) == min(2, len(wanted))

    async def test_a_document_moves_to_the_tenant_and_topic_of_its_last_write(self, bench: Bench) -> None:
        await write(bench, "a", tenant="acme", topic="t")
        await write(bench, "b", tenant="other", topic="u")
        await write(bench, "a", tenant="other", topic="u")
        assert await listed(bench, tenant="acme") == await listed(bench, topic="t") == []
        assert await listed(bench, tenant="other") == await listed(bench, topic="u") == ["a", "b"]

    async def test_a_cursor_stays_valid_while_documents_come_and_go(self, bench: Bench) -> None:
        await bench.store.write_documents([a_write(each) for each in "abcdef"])
        page = await bench.store.list_documents("k", limit=3)
        back = await bench.store.list_documents("k", limit=2, newest_first=True)
        await bench.store.delete_documents("k", ["c", "d", "e"])
        await write(bench, "a", body=b"2")
        await write(bench, "g")
        behind = await bench.store.list_documents("k", cursor=page.next_cursor, limit=9)
        assert ([each.id for each in behind.documents], behind.next_cursor) == (["f", "g"], None)
        before = await bench.store.list_documents("k", cursor=back.next_cursor, limit=9, newest_first=True)
        assert [each.id for each in before.documents] == ["b", "a"]

    async def test_a_cursor_of_another_list_is_refused(self, bench: Bench) -> None:
        await bench.store.write_documents([a_write(each) for each in "abc"])
        cursor = (await bench.store.list_documents("k", limit=1)).next_cursor
        assert cursor is not None
        for kind, newest_first, given in (("k", True, cursor), ("other", False, cursor), ("k", False, "junk")):
            with pytest.raises(InvalidInput) as caught:
                await bench.store.list_documents(kind, newest_first=newest_first, cursor=given, limit=1)
            assert caught.value.field == "cursor"
