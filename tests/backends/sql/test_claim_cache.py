"""What claims remember of one another: when to sweep, and where to go on while looking is dear."""

from __future__ import annotations

from ropewalk.backends.sql.claim.cache import BEFORE_ALL, EXPENSIVE_US, KEYED_FROM, SWEEP_EVERY_US, ClaimCache
from ropewalk.domain.time import SECOND
from ropewalk.testing.contract.builders import claim_request

NOW = 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_sweep_is_due_at_first_then_once_a_second() -> None:
    cache = ClaimCache(Clock())
    assert cache.sweep_due(NOW)
    cache.swept(NOW, None)
    assert not cache.sweep_due(NOW + SWEEP_EVERY_US - 1)
    assert cache.sweep_due(NOW + SWEEP_EVERY_US)


def test_a_sweep_is_due_when_a_known_lease_is_over() -> None:
    cache = ClaimCache(Clock())
    cache.swept(NOW, NOW + 500)
    assert not cache.sweep_due(NOW + 499)
    assert cache.sweep_due(NOW + 500)
    cache.swept(NOW + 500, None)
    cache.granted(NOW + 900)
    assert cache.sweep_due(NOW + 900)


def test_a_clock_that_was_set_back_does_not_stop_the_sweeps() -> None:
    cache = ClaimCache(Clock())
    cache.swept(NOW, None)
    assert cache.sweep_due(NOW - 10 * SWEEP_EVERY_US)


def test_what_was_cheap_to_find_is_looked_for_every_time() -> None:
    cache = ClaimCache(Clock())
    cache.looked([2, 4], EXPENSIVE_US)
    cache.reached(2, (0, 5, 9))
    assert cache.sublanes is None
    assert cache.start_of(2) == BEFORE_ALL


def test_what_was_dear_is_remembered_for_a_second() -> None:
    clock = Clock()
    cache = ClaimCache(clock)
    cache.looked([2, 4], EXPENSIVE_US + 1)
    cache.reached(2, (0, 5, 9))
    clock.seconds += 0.99
    assert cache.sublanes == [2, 4]
    assert (cache.start_of(2), cache.start_of(4)) == ((0, 5, 9), BEFORE_ALL)
    clock.seconds += 0.02
    assert cache.sublanes is None
    cache.looked([2], EXPENSIVE_US + 1)
    assert cache.start_of(2) == BEFORE_ALL, "a new look begins at the beginning"


def test_looking_takes_at_most_a_tenth_of_the_time() -> None:
    clock = Clock()
    cache = ClaimCache(clock)
    cache.looked([2], SECOND // 2)
    clock.seconds += 4.9
    assert cache.sublanes == [2]
    clock.seconds += 0.2
    assert cache.sublanes is None


def test_after_a_claim_that_was_held_up_the_next_reads_as_many_as_can_start() -> None:
    cache = ClaimCache(Clock())
    request = claim_request(limit=300, slots=4)
    assert cache.readable(request) == 300
    cache.held_up()
    assert (cache.readable(request), cache.readable(request)) == (4, 300)
    cache.held_up()
    assert cache.readable(claim_request(limit=300, slots=0)) == 1


def test_sublanes_of_keys_are_looked_at_in_turns() -> None:
    """Some at a time, each once before any comes again, for every lane by itself."""
    first = 3 * KEYED_FROM
    ready = list(range(first + 2, first + 27))

    def read(behind: int, before: int, count: int) -> list[int]:
        return [sublane for sublane in ready if behind < sublane < before][:count]

    cache = ClaimCache(Clock())
    looks = [cache.keys_of(3, 10, read) for _ in range(4)]
    assert [sublane for sublanes, _ in looks[:3] for sublane in sublanes] == ready
    assert looks[3] == looks[0]
    assert all(more for _, more in looks)
    assert cache.keys_of(2, 10, read) == ([], False)
    assert cache.keys_of(3, 99, read)[0] == ready[10:], "it goes on where it was"
    assert cache.keys_of(3, 99, read) == (ready, False)
