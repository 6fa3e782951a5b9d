"""Jobs in a row are changed together, exactly as one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.backends.sql.tx import Row, Tx
from ropewalk.backends.sqlite import SqliteStore
from ropewalk.backends.sqlite.contiguous_ranges import BYTES_MAX, ROWS_MIN, Pattern, forms_of, split_ranges
from ropewalk.domain.jobs.record import IdempotencyKey, JobRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.ports.store.leases import Settled
from ropewalk.testing.contract.builders import claim_request, settlement
from tests.backends.sqlite.conftest import plain, submit

ALIKE: Sequence[Pattern] = ("up", "same", "bytes")


def rows_of(numbers: Sequence[int], result: Callable[[int], bytes | None] = lambda _: b"1") -> list[Row]:
    return [(number, 7, result(number)) for number in numbers]


def test_a_block_has_a_form_for_ranges() -> None:
    forms = forms_of("UPDATE any\n-- range: up, same\nUPDATE range")
    assert (forms.of_rows, forms.of_range, forms.patterns) == ("UPDATE any", "UPDATE range", ("up", "same"))
    assert forms_of("UPDATE any").patterns == ()


def test_consecutive_rows_become_one_range() -> None:
    assert split_ranges(rows_of(range(10, 90), lambda number: b"%d" % number), ALIKE) == (
        [(10, 7, b"".join(b"%d" % number for number in range(10, 90)), 80)],
        [],
    )
    assert split_ranges(rows_of(range(10, 90), lambda _: None), ALIKE) == ([(10, 7, None, 80)], [])


@pytest.mark.parametrize(
    "rows",
    [
        rows_of(range(ROWS_MIN - 1)),
        rows_of(range(0, 80, 2)),
        rows_of([*range(39, -1, -1)]),
        [(0, 7, b"1"), *rows_of([5] * 38), (39, 7, b"1")],
        rows_of(range(40), lambda number: b"1" * (1 + number % 2)),
        rows_of(range(40), lambda number: b"1" if number % 2 else None),
        rows_of(range(40), lambda _: b""),
        rows_of(range(40), lambda _: b"x" * (BYTES_MAX + 1)),
        [(number, number % 3, b"1") for number in range(40)],
    ],
    ids=["few", "gaps", "backwards", "twice", "lengths", "some none", "nothing", "long", "fences"],
)
def test_others_are_left_as_they_are(rows: list[Row]) -> None:
    assert split_ranges(rows, ALIKE) == ([], rows)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), max_size=6))
def test_nobody_is_lost(runs: list[tuple[int, int]]) -> None:
    """What is said of pieces, taken apart again, and the others are all rows."""
    numbers: list[int] = []
    for gap, length in runs:
        begin = numbers[-1] + 1 + gap if numbers else gap
        numbers += range(begin, begin + length)
    pieces, others = split_ranges(rows_of(numbers, lambda number: b"%03d" % (number % 1000)), ALIKE)
    again = [
        (first + at, fence, results[3 * at : 3 * at + 3])
        for first, fence, results, count in pieces
        if isinstance(first, int) and isinstance(results, bytes) and isinstance(count, int)
        for at in range(count)
    ]
    assert sorted([*again, *map(tuple, others)]) == rows_of(numbers, lambda number: b"%03d" % (number % 1000))


async def leased(store: SqliteStore, count: int) -> list[JobRecord]:
    await submit(store, *(plain(f"job-{number}") for number in range(count)))
    return (await store.claim(claim_request(limit=count))).jobs


async def results(store: SqliteStore, jobs: Sequence[JobRecord]) -> list[bytes | None]:
    found = (await store.get("default", [job.id for job in jobs])).jobs
    return [found[job.id].result for job in jobs]


@pytest.mark.parametrize(
    "result",
    [
        lambda number: b"%03d" % number,
        lambda number: b"%d" % number,
        lambda _: None,
        lambda _: b"",
        lambda number: b"x" * (number % 40),
        lambda number: b"\x00\xff%03d" % number if number < 150 else None,
    ],
    ids=["one length", "digits", "none", "nothing", "lengths", "some"],
)
async def test_everybody_gets_its_own_result(store: SqliteStore, result: Callable[[int], bytes | None]) -> None:
    jobs = await leased(store, 300)
    wanted = [result(number) for number in range(300)]
    asked = [settlement(job, result=each) for job, each in zip(jobs, wanted, strict=True)]
    answers = (await store.settle("worker", asked[::-1])).settled
    assert answers == [Settled(seq=job.seq, fence=job.fence, move=Move.COMPLETE) for job in jobs[::-1]]
    assert await results(store, jobs) == wanted


@pytest.mark.parametrize("lost", ["owner = 'other'", "fence = fence + 1", "stage = 1, status = 'waiting'"])
async def test_what_is_not_held_stands_in_the_row_and_is_not_touched(store: SqliteStore, lost: str) -> None:
    """safe-5: a lease that was lost, between those that are simply completed."""
    jobs = await leased(store, 100)
    await store._writer.ask(lambda tx: tx.run(f"UPDATE job SET {lost} WHERE seq = ?", (jobs[40].seq,)))
    answers = (await store.settle("worker", [settlement(job, result=b"1") for job in jobs])).settled
    assert [answer.seq for answer in answers if answer.move is None] == [jobs[40].seq]
    wanted: list[bytes | None] = [b"1"] * 100
    wanted[40] = None
    assert await results(store, jobs) == wanted


async def test_one_that_means_more_takes_the_long_way(store: SqliteStore) -> None:
    keys = {20: IdempotencyKey(key="k", scope="open")}
    await submit(store, *(plain(f"job-{number}", key=keys.get(number)) for number in range(40)))
    jobs = (await store.claim(claim_request(limit=40))).jobs
    answers = (await store.settle("worker", [settlement(job, result=b"1") for job in jobs])).settled
    assert all(answer.move is Move.COMPLETE for answer in answers)
    assert await store._writer.ask(lambda tx: tx.value("SELECT count(*) FROM key WHERE closed_at IS NOT NULL")) == 1


async def test_a_row_of_jobs_is_one_statement(store: SqliteStore) -> None:
    jobs = await leased(store, 400)
    seen: list[str] = []
    await store._writer.ask(lambda tx: _trace(tx, seen))
    done = [settlement(job, result=b"%03d" % at) for at, job in enumerate(jobs)]
    await store.settle("worker", [*done[200:], *done[:200]])
    assert sum("UPDATE job" in statement for statement in seen) == 1
    seen.clear()
    await submit(store, *(plain(f"more-{number}") for number in range(500)))
    more = (await store.claim(claim_request(limit=400, first_ticket=401))).jobs
    assert sum("UPDATE job" in statement for statement in seen) == 1
    held = await store._writer.ask(
        lambda tx: tx.value(
            "SELECT json_group_array(ticket) FROM (SELECT ticket FROM job WHERE stage = 2 ORDER BY seq)"
        )
    )
    assert held == str([job.ticket for job in more]).replace(" ", "")


def _trace(tx: Tx, seen: list[str]) -> None:
    tx._db.set_trace_callback(seen.append)  # type: ignore[attr-defined]  # of this store
