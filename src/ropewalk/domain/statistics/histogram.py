"""How long things took, in so few numbers that a minute of them fits a line: counts by size, the sum and the longest.

A bucket is as wide as an eighth of where it begins, so whatever is read from it is at most a sixteenth off. Count, sum
and maximum are exact, and two histograms added are the histogram of both.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct

from ropewalk.domain.time import Span

STEPS: Final = 8
"""buckets for every doubling"""
BUCKETS: Final = 1 + 64 * STEPS
"""for every span a store can keep"""

# A float begins with its exponent and then its digits: the first 16 bits of a span as a float are its bucket, but for
# an offset and one bit too many. Which of its four parts these are is up to the machine.
_TOP: Final = 3 if sys.byteorder == "little" else 0
_ONE: Final = 1023 * STEPS
"""what 1 µs has there"""


def bounds(bucket: int) -> tuple[Span, Span]:
    """The shortest and the longest span that fall into it."""
    if bucket == 0:
        return 0, 0
    doublings, step = divmod(bucket - 1, STEPS)
    return -(-((STEPS + step) << doublings) // STEPS), -(-((STEPS + step + 1) << doublings) // STEPS) - 1


class Histogram(Struct, omit_defaults=True):
    counts: dict[int, int] = {}
    """by bucket, without empty ones: few of many hundred, mostly"""
    sum: int = 0
    max: Span = 0

    @classmethod
    def of(cls, spans_us: Sequence[Span]) -> Histogram:
        """Called for every batch of jobs that ends: 0.1 µs for each of them, a third of what a search takes."""
        if not spans_us:
            return cls()
        counts: dict[int, int] = {}
        for top, number in Counter(memoryview(array("d", spans_us)).cast("B").cast("H")[_TOP::4]).items():
            bucket = top // 2 - _ONE + 1 if top else 0
            counts[bucket] = counts.get(bucket, 0) + number
        return cls(counts, sum(spans_us), max(spans_us))

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    @property
    def mean(self) -> Span:
        return round(self.sum / self.count) if self.counts else 0

    def note(self, span_us: Span) -> None:
        doublings = span_us.bit_length() - 1
        bucket = 1 + doublings * STEPS + (span_us * STEPS >> doublings) % STEPS if span_us else 0
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.sum += span_us
        self.max = max(self.max, span_us)

    def add(self, other: Histogram) -> None:
        counts = self.counts
        for bucket, number in other.counts.items():
            counts[bucket] = counts.get(bucket, 0) + number
        self.sum += other.sum
        self.max = max(self.max, other.max)

    def percentiles(self, *ranks: int) -> tuple[Span, ...]:
        """What so many of a hundred did not exceed; 0 without any."""
        if not self.counts:
            return (0,) * len(ranks)
        buckets = sorted(self.counts)
        upto = list(accumulate(self.counts[bucket] for bucket in buckets))
        wanted = (-(-rank * upto[-1] // 100) for rank in ranks)
        return tuple(min(_middle(buckets[bisect_right(upto, place - 1)]), self.max) for place in wanted)


class HistogramSum:
    """Very many histograms added up, for those who read a week of them: less than half the time of `Histogram.add`."""

    def __init__(self) -> None:
        self._numbers = [0] * BUCKETS
        self._sum = 0
        self._max: Span = 0

    def add(self, other: Histogram) -> None:
        numbers = self._numbers
        for bucket, number in other.counts.items():
            numbers[bucket] += number
        self._sum += other.sum
        self._max = max(self._max, other.max)

    def whole(self) -> Histogram:
        counts = {bucket: number for bucket, number in enumerate(self._numbers) if number}
        return Histogram(counts, self._sum, self._max)


def _middle(bucket: int) -> Span:
    first, last = bounds(bucket)
    return (first + last) // 2
