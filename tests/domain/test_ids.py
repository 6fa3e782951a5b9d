"""UUIDv7: valid for everybody, and sorted by the time they were made."""

from __future__ import annotations

from uuid import RFC_4122, UUID

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.domain.ids import uuid7

times = st.integers(0, 2**48 * 1000 - 1)
counters = st.integers(0, 2**12 - 1)
entropies = st.integers(0, 2**62 - 1)


@given(times, st.integers(0, 2**20), st.integers(0, 2**80))
def test_the_text_is_a_canonical_uuid7(now: int, counter: int, entropy: int) -> None:
    text = uuid7(now, counter, entropy)
    parsed = UUID(text)
    assert (parsed.version, parsed.variant, str(parsed)) == (7, RFC_4122, text)


@given(times, counters, entropies)
def test_every_part_is_where_the_standard_puts_it(now: int, counter: int, entropy: int) -> None:
    value = UUID(uuid7(now, counter, entropy)).int
    assert value >> 80 == now // 1000
    assert value >> 64 & 0xFFF == counter
    assert value & (2**62 - 1) == entropy


moments = st.tuples(times.map(lambda us: us // 1000 * 1000), counters, entropies)


@given(moments, moments)
def test_text_sorts_by_time_then_counter(one: tuple[int, int, int], two: tuple[int, int, int]) -> None:
    assert (uuid7(*one) < uuid7(*two)) == (one < two)
