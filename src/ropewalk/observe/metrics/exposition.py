"""The Prometheus text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from ropewalk.observe.metrics.registry import Family, Histogram

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def exposition(families: Iterable[Family]) -> str:
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
