"""R12, safe-7: a buffer with an order. Nothing leaves before the store counts it as started, whoever is overtaken."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.worker.attempt import Attempt
from ropewalk.worker.policies.order import Arrangement, ByPriority
from ropewalk.worker.policies.ordered_buffer import OrderedBuffer
from tests.worker.policies.jobs import claimed, held


def by_priority() -> OrderedBuffer:
    return OrderedBuffer(Arrangement(ByPriority(), {}))


def tickets(attempts: list[Attempt]) -> list[int]:
    return [attempt.job.ticket for attempt in attempts]


def taken(line: OrderedBuffer) -> list[int]:
    found: list[int] = []
    while (attempt := line.take()) is not None:
        found.append(attempt.job.ticket)
    return found


def test_what_is_chosen_leaves_only_when_the_store_has_heard_of_it() -> None:
    line = by_priority()
    line.put(held(*(claimed(number, priority=number) for number in (1, 2, 3, 4))), started_upto=0)
    assert line.take() is None
    permit = line.permit(2, last_ticket=4)
    assert (permit.upto, permit.unstarted) == (4, (1, 2))
    assert line.take() is None, "the claim is under way"
    line.put([], started_upto=permit.upto)
    assert taken(line) == [4, 3]
    assert len(line) == 2


def test_who_might_have_started_and_is_overtaken_now_may_not() -> None:
    line = by_priority()
    line.put(held(claimed(1), claimed(2)), started_upto=1)
    line.put(held(claimed(3, priority=9)), started_upto=1)
    permit = line.permit(1, last_ticket=3)
    assert (permit.upto, permit.unstarted) == (3, (1, 2))
    assert line.take() is None, "it is told as unstarted: it must not start while that is told"
    line.put([], started_upto=permit.upto)
    assert taken(line) == [3]


def test_free_slots_take_what_the_claim_brings() -> None:
    line = by_priority()
    permit = line.permit(2, last_ticket=0)
    assert (permit.upto, permit.unstarted) == (2, ())
    line.put(held(claimed(1), claimed(2), claimed(3, priority=9)), started_upto=permit.upto)
    assert taken(line) == [1, 2]


def test_a_claim_that_failed_changes_nothing() -> None:
    line = by_priority()
    line.put(held(claimed(1, priority=5), claimed(2)), started_upto=1)
    line.permit(2, last_ticket=2)  # and no answer
    assert taken(line) == [1], "chosen, and known as started before"
    permit = line.permit(1, last_ticket=2)
    line.put([], started_upto=permit.upto)
    assert taken(line) == [2]


def test_one_that_skipped_the_queue_goes_first() -> None:
    line = by_priority()
    line.put(held(claimed(1, priority=9)), started_upto=0)
    (skipping,) = held(claimed(7))
    skipping.job.ticket = 0
    line.put_first(skipping)
    permit = line.permit(1, last_ticket=1)
    line.put([], started_upto=permit.upto)
    assert taken(line) == [0, 1]


async def test_an_attempt_whose_slot_goes_away_keeps_its_right_to_start() -> None:
    line = by_priority()
    slot: asyncio.Task[Any] = asyncio.create_task(line.wait())
    await asyncio.sleep(0)
    line.put(held(claimed(1)), started_upto=1)
    slot.cancel()
    await asyncio.wait([slot])
    permit = line.permit(0, last_ticket=1)
    assert permit.unstarted == (1,), "it did not start after all"
    assert taken(line) == []
    assert tickets(line.take_all()) == [1]


@given(st.data())
def test_nothing_leaves_that_is_not_counted_as_started(data: st.DataObject) -> None:
    """Whatever claims bring, choose and lose on the way: what leaves is started in every version of the store."""
    line, last, possible = by_priority(), 0, [(0, frozenset[int]())]

    def leave(number: int) -> None:
        for attempt in filter(None, (line.take() for _ in range(number))):
            assert all(counts(attempt, known) for known in possible)

    for _ in range(data.draw(st.integers(1, 12))):
        permit = line.permit(data.draw(st.integers(0, 4)), last)
        possible.append((permit.upto, frozenset(permit.unstarted)))  # a request without an answer may have been heard
        leave(data.draw(st.integers(0, 3)))
        if data.draw(st.booleans()):
            possible = possible[-1:]
            number = data.draw(st.integers(0, 4))
            new = [claimed(last + 1 + each, priority=data.draw(st.integers(0, 3))) for each in range(number)]
            last += number
            line.put(held(*new), started_upto=permit.upto)
        leave(data.draw(st.integers(0, 4)))


def counts(attempt: Attempt, known: tuple[int, frozenset[int]]) -> bool:
    upto, unstarted = known
    return attempt.job.ticket <= upto and attempt.job.ticket not in unstarted
