"""D9: ids: UUIDv7 that only go up, from any thread, different in a forked child; the generator can be replaced."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from ropewalk.definitions.job import ENTROPY_BATCH, MonotonicIds, new_id, set_id_generator


def test_they_are_uuid7_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_800_000_000_123_456_789)
    made = UUID(MonotonicIds()())
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert made.int >> 80 == 1_800_000_000_123


@pytest.mark.parametrize(
    "clock", [lambda: 5_000_000, iter(range(10**12, 0, -1_000_000)).__next__], ids=["stuck", "back"]
)
def test_they_go_up_whatever_the_clock_does(monkeypatch: pytest.MonkeyPatch, clock: Callable[[], int]) -> None:
    monkeypatch.setattr(time, "time_ns", clock)
    generate = MonotonicIds()
    made = [generate() for _ in range(10_000)]
    assert made == sorted(set(made))


def test_randomness_is_drawn_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    urandom = os.urandom

    def counted(size: int) -> bytes:
        drawn.append(size)
        return urandom(size)

    monkeypatch.setattr(os, "urandom", counted)
    generate = MonotonicIds()
    tails = {generate()[-12:] for _ in range(ENTROPY_BATCH + 1)}
    assert drawn == [8 * ENTROPY_BATCH] * 2
    assert len(tails) == ENTROPY_BATCH + 1


def test_threads_never_share_one() -> None:
    generate = MonotonicIds()

    def many(_: int) -> list[str]:
        return [generate() for _ in range(2_000)]

    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(many, range(8)))
    assert all(batch == sorted(batch) for batch in batches)
    assert len({each for batch in batches for each in batch}) == 16_000


FORK = """
import os
from ropewalk.definitions.job import MonotonicIds
generate = MonotonicIds()
generate()
with generate._lock:  # as another thread would hold it at the moment of the fork
    pid = os.fork()
    if pid == 0:
        print(generate(), flush=True)
        os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(generate())
"""


def test_a_forked_child_draws_its_own_and_inherits_no_held_lock() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=30, check=True)
    child, parent = map(UUID, done.stdout.split())
    assert child.int & 0xFFFF_FFFF_FFFF != parent.int & 0xFFFF_FFFF_FFFF


def test_the_generator_can_be_replaced() -> None:
    set_id_generator(lambda: "mine")
    try:
        assert new_id() == "mine"
    finally:
        set_id_generator(None)
    assert UUID(new_id()).version == 7
