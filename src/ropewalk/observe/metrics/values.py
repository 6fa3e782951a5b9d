"""The numbers of all metrics: one value or one histogram for each combination of labels. Any thread may write and read
them.

A metric has at most SERIES_MAX combinations. All further ones are counted together under "other", so that names from
outside, such as the queues and types of other programs, cannot fill the memory.
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
    """The numbers of values in the buckets: `counts[i]` values were above bound i-1 and at most bound i; the last
    bucket has no upper bound."""

    counts: list[int]
    sum: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)


class Sample(Struct, frozen=True, kw_only=True):
    """The value or the histogram of a metric for one combination of labels."""

    labels: dict[str, str]
    value: float | None = None
    histogram: Histogram | None = None


class Family(Struct, frozen=True, kw_only=True):
    """A metric with all its samples at one moment."""

    name: str
    help: str
    kind: Kind
    buckets: tuple[float, ...]
    samples: list[Sample]


class MetricValues:
    """The numbers of one app in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[str, dict[Labels, float]] = {}
        self._histograms: dict[str, dict[Labels, Histogram]] = {}
        for metric in ALL:
            of_kind = self._histograms if metric.kind == "histogram" else self._values
            of_kind[metric.name] = {}

    def add(self, metric: Metric, labels: Labels, amount: float) -> None:
        """Adds to a counter."""
        with self._lock:
            series = self._values[metric.name]
            key = _bounded(series, labels)
            series[key] = series.get(key, 0) + amount

    def observe(self, metric: Metric, labels: Labels, values: list[float] | list[int], *, per_unit: int = 1) -> None:
        """Adds values to a histogram, many at once because that is cheaper. `per_unit` of their units make one unit of
        the metric."""
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
        """Replaces all values of a gauge. Values beyond SERIES_MAX are left out, because ages cannot be added up."""
        with self._lock:
            self._values[metric.name] = dict(values[:SERIES_MAX])

    def collect(self) -> list[Family]:
        """Returns all metrics with their samples."""
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
    """Returns (bucket, number of values in it) for every bucket that has any. The values of one batch are often all in
    one bucket. Sorts `values`."""
    if max(values) <= bounds[0]:  # The times of quick handlers are in no order and slow to sort.
        return [(0, len(values))]
    values.sort()  # They come nearly in order, so this is faster than min and max.
    first, last = bisect_left(bounds, values[0]), bisect_left(bounds, values[-1])
    if first == last:
        return [(first, len(values))]
    ends = [*(bisect_right(values, bound) for bound in bounds[first:last]), len(values)]
    return [(first + at, upto - below) for at, (below, upto) in enumerate(pairwise([0, *ends]))]


@lru_cache(maxsize=64)
def _scaled(metric: Metric, per_unit: int) -> tuple[float, ...]:
    return tuple(round(bound * per_unit) for bound in metric.buckets)
