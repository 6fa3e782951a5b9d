"""Each statement repeats fence and owner by itself, also where something before it has looked at them already."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeAlias

import pytest
import pytest_asyncio
from msgspec import structs

from ropewalk.backends.sql import records
from ropewalk.backends.sql.blocks import statements_in
from ropewalk.backends.sql.completion import complete
from ropewalk.backends.sql.records import load
from ropewalk.backends.sql.store import SqlStore
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.jobs.flags import SETTLES_ALONE, SETTLES_IN_SCOPE, STEPPED
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.ports.store.leases import Holder
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract import Backend
from ropewalk.testing.contract.bench import Bench, holder
from ropewalk.testing.contract.builders import new_job, settlement
from tests.backends.postgres.backend import PostgresBackend
from tests.backends.test_sqlite import SqliteBackend

pytestmark = pytest.mark.asyncio

IN_A_ROW: Final = 20
"""so many that SQLite changes them as one range"""
LATER: Final = 4_000_000_000_000_000
Write: TypeAlias = Callable[[Tx, list[Holder]], Any]


def renew(tx: Tx, late: list[Holder]) -> None:
    tx.run_rows(tx.sql.renew_leases, [(each.seq, each.fence, LATER, None) for each in late], late[0].owner)


def note(tx: Tx, late: list[Holder]) -> None:
    for each in late:
        tx.run(tx.sql.write_note, (b"9", None, each.seq, each.fence, each.owner))


def add_flag(tx: Tx, late: list[Holder]) -> None:
    for each in late:
        tx.run(tx.sql.add_flag, (STEPPED, each.seq, each.fence, each.owner))


def complete_plain(tx: Tx, late: list[Holder]) -> None:
    done = complete(tx, late[0].owner, [(each.seq, each.fence, b"9") for each in late], SETTLES_ALONE)
    assert done.seqs == []


def complete_without_looking(tx: Tx, late: list[Holder]) -> None:
    """On SQLite the statement that looks and the one that changes are two."""
    change = statements_in(tx.sql.complete_plain)[-1]
    tx.run_rows(change, [(each.seq, each.fence, b"9") for each in late], LATER, late[0].owner, SETTLES_ALONE)


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "sqlite":
        return SqliteBackend()
    server, schemas = request.getfixturevalue("newest_postgres"), request.getfixturevalue("schemas_of")
    return PostgresBackend(schemas(server), server.dsn(), notify="off")


@pytest_asyncio.fixture
async def bench(backend: Backend) -> AsyncIterator[Bench]:
    runtime = FakeRuntime()
    yield Bench(await backend.open(runtime), runtime, backend)
    await backend.close()


@pytest.mark.parametrize("stale", ["fence", "owner", "ended"])
@pytest.mark.parametrize("write", [renew, note, add_flag, complete_plain, complete_without_looking])
@pytest.mark.parametrize("number", [1, IN_A_ROW])
async def test_a_stale_write_changes_no_row(bench: Bench, write: Write, stale: str, number: int) -> None:
    if write is complete_without_looking and not isinstance(bench.backend, SqliteBackend):
        return  # one statement, which answers what it changed
    jobs = await _running(bench, number)
    late = await _stale(bench, jobs, stale)
    before = [await bench.job(job.id) for job in jobs]
    await _write(bench, lambda tx: write(tx, late))
    assert [await bench.job(job.id) for job in jobs] == before
    if stale != "ended":
        await _write(bench, lambda tx: _fresh(write)(tx, [holder(job) for job in jobs]))
        assert all(job not in before for job in [await bench.job(each.id) for each in jobs]), (
            "or it writes nothing at all"
        )


@pytest.mark.parametrize("stale", ["owner", "ended"])
async def test_a_stale_lease_is_not_found(bench: Bench, stale: str) -> None:
    [job] = await _running(bench, 1)
    [late] = await _stale(bench, [job], stale)
    found = await _write(bench, lambda tx: tx.value(tx.sql.leases_to_renew, (f"[{job.seq}]", late.owner)))
    assert found in ("[]", b"[]")


@pytest.mark.parametrize("stale", ["owner", "ended"])
async def test_a_stale_member_is_not_found(bench: Bench, stale: str) -> None:
    parent = await bench.running(owner="parent")
    child = structs.replace(new_job(), group_id=parent.id, parent_id=parent.id, spawn_key="k")
    await bench.submit(child, under=holder(parent))
    member = await bench.claim_one()
    late = structs.replace(holder(member), owner="you") if stale == "owner" else holder(member)
    if stale == "ended":
        await bench.settle(member)
    wanted = (f"[{member.seq}]", late.owner, SETTLES_IN_SCOPE)
    assert await _write(bench, lambda tx: tx.value(tx.sql.held_members, wanted)) in ("[]", b"[]")


@pytest.mark.parametrize("stale", ["fence", "owner", "ended"])
async def test_a_stale_holder_is_not_found(bench: Bench, stale: str) -> None:
    jobs = await _running(bench, 1)
    [late] = await _stale(bench, jobs, stale)
    assert await _write(bench, lambda tx: tx.row(tx.sql.is_held, (late.seq, late.fence, late.owner))) is None


@pytest.mark.parametrize("number", [1, IN_A_ROW])
async def test_a_record_that_was_loaded_under_another_fence_is_not_saved(bench: Bench, number: int) -> None:
    """safe-5: the other way to write a job, whole, after the domain changed it."""
    jobs = await _running(bench, number)
    seqs = [job.seq for job in jobs]
    before = [await bench.job(job.id) for job in jobs]

    def save(tx: Tx, *, fence_is_off_by: int) -> None:
        loaded = load(tx, seqs)
        for job in loaded:
            job.fence -= fence_is_off_by
            job.priority = 9
        records.save(tx, loaded)

    with pytest.raises(AssertionError, match="0 were still there"):
        await _write(bench, lambda tx: save(tx, fence_is_off_by=1))
    assert [await bench.job(job.id) for job in jobs] == before
    await _write(bench, lambda tx: save(tx, fence_is_off_by=0))
    assert {(await bench.job(job.id)).priority for job in jobs} == {9}


async def _running(bench: Bench, number: int) -> list[JobRecord]:
    await bench.submit(*(new_job() for _ in range(number)))
    return await bench.claim(number)


async def _stale(bench: Bench, jobs: list[JobRecord], stale: str) -> list[Holder]:
    held = [holder(job) for job in jobs]
    if stale == "fence":
        return [structs.replace(each, fence=each.fence + 1) for each in held]
    if stale == "owner":
        return [structs.replace(each, owner="you") for each in held]
    await bench.settle_all("worker", [settlement(job) for job in jobs])
    return held


def _fresh(write: Write) -> Write:
    """Of a write that checks its own answer, the part that changes rows."""
    if write is not complete_plain:
        return write
    return lambda tx, held: complete(tx, held[0].owner, [(e.seq, e.fence, b"9") for e in held], SETTLES_ALONE)


async def _write(bench: Bench, work: Callable[[Tx], Any]) -> Any:
    assert isinstance(bench.store, SqlStore)
    return await bench.store._write(work)
