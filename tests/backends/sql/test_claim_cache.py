"""What claims remember of one another: when to sweep, and where to go on while looking is dear."""

from __future__ import annotations

from ropewalk.backends.sql.claim.cache import BEFORE_ALL, DEAR_US, KEYED_FROM, SWEEP_EVERY_US, ClaimCache
from ropewalk.domain.time import SECOND
from ropewalk.testing.contract.build import claim_request

NOW = 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_sweep_is_due_at_first_then_once_a_second() -> None:
    outlook = ClaimCache(Clock())
    assert outlook.sweep_due(NOW)
    outlook.swept(NOW, None)
    assert not outlook.sweep_due(NOW + SWEEP_EVERY_US - 1)
    assert outlook.sweep_due(NOW + SWEEP_EVERY_US)


def test_a_sweep_is_due_when_a_known_lease_is_over() -> None:
    outlook = ClaimCache(Clock())
    outlook.swept(NOW, NOW + 500)
    assert not outlook.sweep_due(NOW + 499)
    assert outlook.sweep_due(NOW + 500)
    outlook.swept(NOW + 500, None)
    outlook.granted(NOW + 900)
    assert outlook.sweep_due(NOW + 900)


def test_a_clock_that_was_set_back_does_not_stop_the_sweeps() -> None:
    outlook = ClaimCache(Clock())
    outlook.swept(NOW, None)
    assert outlook.sweep_due(NOW - 10 * SWEEP_EVERY_US)


def test_what_was_cheap_to_find_is_looked_for_every_time() -> None:
    outlook = ClaimCache(Clock())
    outlook.looked([2, 4], DEAR_US)
    outlook.reached(2, (0, 5, 9))
    assert outlook.sublanes is None
    assert outlook.start_of(2) == BEFORE_ALL


def test_what_was_dear_is_remembered_for_a_second() -> None:
    clock = Clock()
    outlook = ClaimCache(clock)
    outlook.looked([2, 4], DEAR_US + 1)
    outlook.reached(2, (0, 5, 9))
    clock.seconds += 0.99
    assert outlook.sublanes == [2, 4]
    assert (outlook.start_of(2), outlook.start_of(4)) == ((0, 5, 9), BEFORE_ALL)
    clock.seconds += 0.02
    assert outlook.sublanes is None
    outlook.looked([2], DEAR_US + 1)
    assert outlook.start_of(2) == BEFORE_ALL, "a new look begins at the beginning"


def test_looking_takes_at_most_a_tenth_of_the_time() -> None:
    clock = Clock()
    outlook = ClaimCache(clock)
    outlook.looked([2], SECOND // 2)
    clock.seconds += 4.9
    assert outlook.sublanes == [2]
    clock.seconds += 0.2
    assert outlook.sublanes is None


def test_after_a_claim_that_was_held_up_the_next_reads_as_many_as_can_start() -> None:
    outlook = ClaimCache(Clock())
    request = claim_request(limit=300, slots=4)
    assert outlook.readable(request) == 300
    outlook.held_up()
    assert (outlook.readable(request), outlook.readable(request)) == (4, 300)
    outlook.held_up()
    assert outlook.readable(claim_request(limit=300, slots=0)) == 1


def test_sublanes_of_keys_are_looked_at_in_turns() -> None:
    """Some at a time, each once before any comes again, for every lane by itself."""
    first = 3 * KEYED_FROM
    ready = list(range(first + 2, first + 27))

    def survey(behind: int, before: int, count: int) -> list[int]:
        return [sublane for sublane in ready if behind < sublane < before][:count]

    outlook = ClaimCache(Clock())
    looks = [outlook.keys_of(3, 10, survey) for _ in range(4)]
    assert [sublane for sublanes, _ in looks[:3] for sublane in sublanes] == ready
    assert looks[3] == looks[0]
    assert all(more for _, more in looks)
    assert outlook.keys_of(2, 10, survey) == ([], False)
    assert outlook.keys_of(3, 99, survey)[0] == ready[10:], "it goes on where it was"
    assert outlook.keys_of(3, 99, survey) == (ready, False)
