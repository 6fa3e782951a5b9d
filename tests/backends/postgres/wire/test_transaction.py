"""Statements that travel together: how many trips a verb takes, and what is told when one of them fails on its way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import pytest
from psycopg.abc import PQGen

from ropewalk.backends.postgres import PostgresStore
from ropewalk.backends.postgres.wire.pipeline import Pipeline
from ropewalk.backends.postgres.wire.statement import Reply, Statement
from ropewalk.backends.sql.tx import Tx
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.errors import InvalidInput, OutcomeUnknown, RopewalkError
from ropewalk.ports.store.submission import Submission
from ropewalk.testing.contract.builders import claim_request, new_job, settlement
from tests.backends.postgres.conftest import OpenStore

pytestmark = pytest.mark.asyncio

COUNT = "INSERT INTO counters (at, lane, counts) SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[])"
END_SESSION = "UPDATE meta SET epoch = length(pg_terminate_backend(pg_backend_pid())::text) + (%s::bigint[])[1]"


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[bytes]]]:
    """By trip the first words of its statements."""
    trips: list[list[bytes]] = []
    whole = Pipeline.round_trip

    def trip(self: Pipeline, said: Sequence[Statement]) -> PQGen[list[Reply]]:
        trips.append([each.statement.split()[0] for each in said])
        return whole(self, said)

    with monkeypatch.context() as patched:
        patched.setattr(Pipeline, "round_trip", trip)
        yield trips


async def submitted(store: PostgresStore, job_id: str) -> None:
    [answer] = await store.submit([Submission(jobs=[new_job(id=job_id)])])
    assert not isinstance(answer, RopewalkError)


async def test_trips_of_the_verbs_a_job_meets(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for that nobody needs before the commit."""
    store = await open_store()
    for job_id in "ab":  # so that lanes, limits and quotas are known
        await submitted(store, job_id)
        [job] = (await store.claim(claim_request(owner="w"))).jobs
        await store.settle("w", [settlement(job)])
    with counted(monkeypatch) as trips:
        await submitted(store, "c")
        assert len(trips) == 3
        [job] = (await store.claim(claim_request(owner="w"))).jobs
        assert len(trips) == 3 + 1
        await store.settle("w", [settlement(job)])
        assert len(trips) == 3 + 1 + 1
    ends = ((trips[0], trips[2]), (trips[3], trips[3]), (trips[4], trips[4]))
    assert all(first[0] == b"BEGIN" and last[-1] == b"COMMIT" for first, last in ends)


async def test_trips_of_a_claim_from_two_streams(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await open_store()
    for job_type in "abab":
        await store.submit([Submission(jobs=[new_job(job_type)])])
    await store.claim(claim_request(owner="w", limit=2))
    with counted(monkeypatch) as trips:
        jobs = (await store.claim(claim_request(owner="w", limit=2))).jobs
        assert [job.type for job in jobs] == ["a", "b"]
        assert len(trips) == 5, "the situation, one and another of each, the leases"


async def test_a_reader_is_told_before_its_transaction_ends(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store()
    await submitted(store, "a")
    told_after: list[int] = []
    with counted(monkeypatch) as trips:

        def look(tx: Tx) -> int:
            value: int = tx.value("SELECT count(*) FROM job_by_stage")
            told_after.append(len(trips))
            return value

        assert await store._read(look) == 1
        assert told_after == [1]
        assert await store._read(look) == 1
    assert trips[1] == [b"COMMIT"]


async def test_the_time_is_one_throughout_a_transaction(open_store: OpenStore) -> None:
    store = await open_store()

    def look(tx: Tx) -> tuple[int | None, int, int]:
        before = tx.known_now
        told: int = tx.value("SELECT (extract(epoch FROM transaction_timestamp()) * 1000000)::bigint")
        return before, told, tx.now

    before, told, now = await store._write(look)
    assert before is None
    assert told == now


def counting(*lanes: int) -> Callable[[Tx], None]:
    return lambda tx: tx.run_rows_later(COUNT, [(1, lane, "{}") for lane in lanes])


async def counts(store: PostgresStore) -> int:
    found: int = await store._read(lambda tx: tx.value("SELECT count(*) FROM counters WHERE at = 1"))
    return found


async def test_what_is_put_off_is_done_by_the_commit(open_store: OpenStore) -> None:
    store = await open_store()
    await store._write(counting(1, 2))
    assert await counts(store) == 2


async def test_what_is_put_off_is_done_in_order(open_store: OpenStore) -> None:
    store = await open_store()

    def work(tx: Tx) -> int:
        counting(1)(tx)
        found: int = tx.value("SELECT count(*) FROM counters WHERE at = 1")
        return found

    assert await store._write(work) == 1


async def test_nothing_is_committed_behind_a_statement_that_failed(open_store: OpenStore) -> None:
    store = await open_store()

    def work(tx: Tx) -> None:
        counting(1)(tx)
        tx.run_rows_later("INSERT INTO counters (at, lane, counts) SELECT 1, 1 / (%s::bigint[])[1], ''", [(0,)])

    with pytest.raises(Exception, match="division by zero"):
        await store._write(work)
    assert await counts(store) == 0
    await store._write(counting(1))
    assert await counts(store) == 1


async def test_a_conflict_on_the_way_to_the_commit_is_run_again(open_store: OpenStore) -> None:
    store = await open_store()
    await store._write(lambda tx: tx.run(FAIL_ONCE))
    tries: list[int] = []

    def work(tx: Tx) -> None:
        tries.append(1)
        tx.run_rows_later(f"INSERT INTO counters (at, lane, counts) SELECT 1, {MOVED}, ''", [(len(tries),)])

    await store._write(work)
    assert len(tries) == 2
    assert await counts(store) == 1


MOVED = "moved_at_first((%s::bigint[])[1])"
FAIL_ONCE = """
CREATE FUNCTION moved_at_first(try bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
    IF try = 1 THEN RAISE SQLSTATE '40001'; END IF;
    RETURN try;
END $$
"""


async def test_a_session_that_ends_beside_the_commit_leaves_it_unknown(open_store: OpenStore) -> None:
    """Both were under way: nobody can tell how far they came."""
    store = await open_store()
    await submitted(store, "a")
    with pytest.raises(OutcomeUnknown):
        await store._write(lambda tx: tx.run_rows_later(END_SESSION, [(0,)]))
    await submitted(store, "b")
    assert set((await store.get(DEFAULT_TENANT, ["a", "b"])).jobs) == {"a", "b"}


async def test_a_value_that_cannot_be_sent_takes_nothing_with_it(open_store: OpenStore) -> None:
    store = await open_store()

    def work(tx: Tx) -> None:
        counting(1)(tx)
        tx.run("SELECT %s::text", ("\0",))

    with pytest.raises(InvalidInput, match="cannot be stored"):
        await store._write(work)
    assert await counts(store) == 0
    await store._write(counting(1))
    assert await counts(store) == 1


@pytest.mark.parametrize("undone", [True, False], ids=["undone", "kept"])
async def test_a_transaction_goes_on_behind_a_value_that_cannot_be_sent(open_store: OpenStore, undone: bool) -> None:
    """It was not even begun with it, and what waited still does."""
    store = await open_store()

    def work(tx: Tx) -> None:
        counting(1)(tx)
        with pytest.raises(Exception, match="NUL"):
            tx.run("SELECT %s::text", ("\0",))
        tx.run("INSERT INTO counters (at, lane, counts) VALUES (1, 2, '')")
        if undone:
            raise ValueError

    with pytest.raises(ValueError) if undone else nullcontext():
        await store._write(work)
    assert await counts(store) == (0 if undone else 2)


async def test_what_a_failure_kept_from_being_prepared_is_prepared_later(open_store: OpenStore) -> None:
    store = await open_store()
    late = "INSERT INTO counters (at, lane, counts) SELECT 1, 1, 'late' || cardinality(%s::bigint[])"

    def failing(tx: Tx) -> None:
        tx.run_rows_later("INSERT INTO counters (at, lane, counts) SELECT 1, 1 / (%s::bigint[])[1], ''", [(0,)])
        tx.run_rows_later(late, [(1,)])

    with pytest.raises(Exception, match="division by zero"):
        await store._write(failing)
    await store._write(lambda tx: tx.run_rows_later(late, [(1,)]))
    assert await counts(store) == 1


async def test_a_part_that_is_undone_takes_what_it_put_off_with_it(open_store: OpenStore) -> None:
    store = await open_store()

    def work(tx: Tx) -> None:
        counting(1)(tx)
        with pytest.raises(ValueError), tx.savepoint():
            counting(2, 3)(tx)
            raise ValueError
        counting(4)(tx)

    await store._write(work)
    assert await counts(store) == 2


async def test_a_first_part_that_was_never_sent_is_undone(open_store: OpenStore) -> None:
    store = await open_store()

    def work(tx: Tx) -> None:
        with pytest.raises(ValueError), tx.savepoint():
            counting(1)(tx)
            raise ValueError
        counting(2, 3)(tx)

    await store._write(work)
    assert await counts(store) == 2


async def test_a_first_part_that_is_undone_begins_the_transaction_again(open_store: OpenStore) -> None:
    store = await open_store()

    def work(tx: Tx) -> bool:
        with pytest.raises(ValueError), tx.savepoint():
            counting(1)(tx)
            first = tx.now
            raise ValueError
        counting(2)(tx)
        return first < tx.now

    assert await store._write(work)
    assert await counts(store) == 1


async def test_no_more_is_kept_prepared_than_is_useful(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ropewalk.backends.postgres.connections.PREPARED_MAX", 5)
    store = await open_store()
    for number in range(20):

        def one_more(tx: Tx, number: int = number) -> object:
            return tx.value(f"SELECT {number} + %s::integer", (1,))

        assert await store._write(one_more) == number + 1
    prepared = await store._write(lambda tx: tx.value("SELECT count(*) FROM pg_prepared_statements"))
    assert 1 <= prepared <= 7
