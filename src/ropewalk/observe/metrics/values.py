"""Where numbers are kept: one value, or one histogram, for each combination of labels. Any thread may write or read.

A metric keeps at most SERIES_MAX combinations; later ones are counted together under "other", so that names which
come from outside (queues, types of other programs) cannot fill the memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.observe.metrics.catalogue import ALL, Kind, Metric

SERIES_MAX: Final = 500
OTHER: Final = "other"

Labels: TypeAlias = tuple[str, ...]


class Histogram(Struct):
    """`counts[i]` values were at most the i-th bound and above the one before; the last has no bound."""

    counts: list[int]
    sum: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)


class Sample(Struct, frozen=True, kw_only=True):
    labels: dict[str, str]
    value: float | None = None
    histogram: Histogram | None = None


class Family(Struct, frozen=True, kw_only=True):
    """A metric as it stands now."""

    name: str
    help: str
    kind: Kind
    buckets: tuple[float, ...]
    samples: list[Sample]


class MetricValues:
    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[str, dict[Labels, float]] = {}
        self._histograms: dict[str, dict[Labels, Histogram]] = {}
        for metric in ALL:
            of_kind = self._histograms if metric.kind == "histogram" else self._values
            of_kind[metric.name] = {}

    def add(self, metric: Metric, labels: Labels, amount: float) -> None:
        with self._lock:
            series = self._values[metric.name]
            key = _bounded(series, labels)
            series[key] = series.get(key, 0) + amount

    def observe(self, metric: Metric, labels: Labels, values: list[float] | list[int], *, per_unit: int = 1) -> None:
        """Many at once, which is what makes it cheap; `per_unit` of theirs make one of the metric's."""
        if not values:
            return
        counts, total = counted(values, metric.buckets if per_unit == 1 else _scaled(metric, per_unit)), sum(values)
        with self._lock:
            series = self._histograms[metric.name]
            key = _bounded(series, labels)
            histogram = series.get(key)
            if histogram is None:
                histogram = series[key] = Histogram([0] * (len(metric.buckets) + 1))
            histogram.sum += total / per_unit
            for at, count in counts:
                histogram.counts[at] += count

    def replace(self, metric: Metric, values: Sequence[tuple[Labels, float]]) -> None:
        """The whole of a gauge, as it was just read. What is beyond the bound is left out: ages have no sum."""
        with self._lock:
            self._values[metric.name] = dict(values[:SERIES_MAX])

    def collect(self) -> list[Family]:
        with self._lock:
            return [self._family(metric) for metric in ALL]

    def _family(self, metric: Metric) -> Family:
        samples = [
            Sample(labels=dict(zip(metric.labels, labels, strict=True)), value=value)
            for labels, value in sorted(self._values.get(metric.name, {}).items())
        ] + [
            Sample(labels=dict(zip(metric.labels, labels, strict=True)), histogram=Histogram(list(h.counts), h.sum))
            for labels, h in sorted(self._histograms.get(metric.name, {}).items())
        ]
        return Family(name=metric.name, help=metric.help, kind=metric.kind, buckets=metric.buckets, samples=samples)


def _bounded(series: dict[Labels, float] | dict[Labels, Histogram], labels: Labels) -> Labels:
    if labels in series or len(series) < SERIES_MAX:
        return labels
    return (OTHER,) * len(labels)


def counted(values: list[float] | list[int], bounds: tuple[float, ...]) -> list[tuple[int, int]]:
    """(bucket, how many values are in it), where there are any. Those of one batch are often all in the same."""
    if max(values) <= bounds[0]:  # as quick handlers are: how long they took is in no order, and slow to sort
        return [(0, len(values))]
    values.sort()  # takes less than to look for the least and the largest: they come nearly in order
    first, last = bisect_left(bounds, values[0]), bisect_left(bounds, values[-1])
    if first == last:
        return [(first, len(values))]
    ends = [*(bisect_right(values, bound) for bound in bounds[first:last]), len(values)]
    return [(first + at, upto - below) for at, (below, upto) in enumerate(pairwise([0, *ends]))]


@lru_cache(maxsize=64)
def _scaled(metric: Metric, per_unit: int) -> tuple[float, ...]:
    return tuple(round(bound * per_unit) for bound in metric.buckets)
