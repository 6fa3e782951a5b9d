"""Error text within its limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.domain.failure import ERROR_TEXT_MAX, clipped


def test_both_sides_of_the_limit() -> None:
    assert ERROR_TEXT_MAX == 10_000
    fits = "x" * ERROR_TEXT_MAX
    assert clipped(fits) == fits
    assert len(clipped(fits + "x")) <= ERROR_TEXT_MAX


@given(st.text(min_size=8), st.integers(7, 60))
def test_both_ends_stay(text: str, limit: int) -> None:
    short = clipped(text, limit)
    assert len(short) <= max(limit, 0)
    assert (short[0], short[-1]) == (text[0], text[-1])
    assert short == text or "\n...\n" in short


def test_half_a_surrogate_pair_is_written_out() -> None:
    assert clipped("caf\u00e9 \udcff") == "caf\u00e9 \\udcff"
    clipped("\udcff" * ERROR_TEXT_MAX).encode()
