"""What one run yields. A rate is better the higher it is, a latency the lower."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    jobs: int
    """counted and verified"""
    figures: dict[str, float]
    """the first is what is compared; the rest is shown beside it"""

    @property
    def headline(self) -> float:
        return next(iter(self.figures.values()))


def rate(jobs: int, seconds: float) -> Measurement:
    return Measurement(jobs, {"jobs/s": jobs / seconds})


def latency(seconds: list[float]) -> Measurement:
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return Measurement(len(seconds), {f"p{cut} ms": cuts[cut - 1] * 1000 for cut in (50, 95, 99)})
