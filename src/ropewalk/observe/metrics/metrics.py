"""`app.metrics` shows what this process has counted and what waits in the store, as Prometheus text (format 0.0.4) or
as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final, Protocol

from ropewalk.definitions.registry import Registry
from ropewalk.domain.time import SECOND, Instant
from ropewalk.errors import RopewalkError
from ropewalk.observe.events import EventHub
from ropewalk.observe.metrics import catalogue
from ropewalk.observe.metrics.meter import Meter
from ropewalk.observe.metrics.values import Family, Histogram, MetricValues
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import DIAGNOSIS
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.diagnosis import Backlog

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def exposition(families: Iterable[Family]) -> str:
    """Returns the metrics as Prometheus text."""
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {_escaped(family.help)}"
    yield f"# TYPE {family.name} {family.kind}"
    for sample in family.samples:
        if sample.histogram is None:
            yield f"{family.name}{_labels(sample.labels)} {_number(sample.value or 0.0)}"
        else:
            yield from _histogram(family, sample.labels, sample.histogram)


def _histogram(family: Family, labels: Mapping[str, str], histogram: Histogram) -> Iterator[str]:
    bounds = [*map(_number, family.buckets), "+Inf"]
    for bound, count in zip(bounds, accumulate(histogram.counts), strict=True):
        yield f"{family.name}_bucket{_labels({**labels, 'le': bound})} {count}"
    yield f"{family.name}_sum{_labels(labels)} {_number(histogram.sum)}"
    yield f"{family.name}_count{_labels(labels)} {histogram.count}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    inside = ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items())
    return f"{{{inside}}}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")


LOOK_SHARE: Final = 20
"""After the store was read, it is not read again for this many times as long as that took, so that reading it takes a
twentieth of the time at most."""
LOOK_SECONDS: Final = 1.0
"""The store is not read more often than once in this time."""


class MeasuredApp(Protocol):
    """What the metrics read of an app: its store and the job types that it knows."""

    @property
    def store(self) -> Store: ...

    @property
    def runtime(self) -> Runtime: ...

    @property
    def events(self) -> EventHub: ...

    @property
    def registry(self) -> Registry: ...

    async def open(self) -> None: ...


class Metrics:
    """The metrics of an app. Counters are those of this process since its start; gauges of queues are read from the
    store when the metrics are read."""

    content_type: Final = CONTENT_TYPE
    """The content type of an HTTP answer with the Prometheus text."""

    def __init__(self, app: MeasuredApp, values: MetricValues, meter: Meter | None) -> None:
        self._app = app
        self._values = values
        self._meter = meter
        self._next_look = float("-inf")

    async def text(self) -> str:
        """Returns the metrics as Prometheus text. However many callers there are, the store is read at most once a
        second."""
        return exposition(await self.snapshot())

    async def snapshot(self) -> list[Family]:
        """Returns the metrics as data: every metric with all its samples."""
        await self._look()
        if self._meter is not None:
            self._meter.count_begun()
        return self._values.collect()

    async def _look(self) -> None:
        runtime = self._app.runtime
        began = runtime.monotonic()
        if began < self._next_look:
            return
        self._next_look = began + LOOK_SECONDS  # Callers that come meanwhile do not read the store.
        try:
            await self._app.open()
            diagnosis = DIAGNOSIS.if_declared(self._app.store)
            backlog = [] if diagnosis is None else await diagnosis.backlog()
            now = await self._app.store.clock()
        except RopewalkError as error:
            self._app.events.report(error, "metrics")
            backlog, now = [], 0  # The counters of this process are shown nevertheless.
        self._set(backlog, now)
        self._next_look = began + max(LOOK_SECONDS, LOOK_SHARE * (runtime.monotonic() - began))

    def _set(self, backlog: list[Backlog], now: Instant) -> None:
        ready: Counter[str] = Counter()
        oldest: dict[str, Instant] = {}
        unknown: Counter[str] = Counter()
        for each in backlog:
            queue, job_type = each.lane.queue, each.lane.type
            ready[queue] += each.ready
            oldest[queue] = min(each.oldest_ready_at, oldest.get(queue, each.oldest_ready_at))
            if job_type not in self._app.registry:
                unknown[job_type] += each.ready
        largest = [queue for queue, _ in ready.most_common()]
        ages = [((queue,), max(0, now - oldest[queue]) / SECOND) for queue in largest]
        self._values.replace(catalogue.READY, [((queue,), ready[queue]) for queue in largest])
        self._values.replace(catalogue.OLDEST, ages)
        self._values.replace(catalogue.UNREGISTERED, [((name,), count) for name, count in unknown.most_common()])
