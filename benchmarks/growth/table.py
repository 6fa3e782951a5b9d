"""Each case in a row: its figures, and how many times those of the empty store they are, round by round."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Final, TypeAlias

from benchmarks.growth.cases import Case, Drained
from benchmarks.subjects.subject import StoreName

Results: TypeAlias = dict[StoreName, dict[Case, list[Drained]]]
TIMES_MAX: Final = 1.3
HEADINGS: Final = ("store", "case", "jobs/s", "time ×", "server CPU a job", "CPU ×", "WAL a job", "WAL ×", "")

_Figure: TypeAlias = Callable[[Drained], float | None]
_FIGURES: Final[dict[str, _Figure]] = {
    "time": lambda drained: drained.wall_us,
    "CPU": lambda drained: drained.cpu_us,
    "WAL": lambda drained: drained.wal_bytes,
}


def rows(results: Results) -> list[list[str]]:
    return [_row(store, case, results[store]) for store in results for case in results[store]]


def ratios(case: Case, of: dict[Case, list[Drained]]) -> dict[str, float | None]:
    """How many times the empty store's time, CPU and WAL a job: medians of the rounds' ratios."""
    return {name: _ratio(of[case], of["empty"], figure) for name, figure in _FIGURES.items()}


def _row(store: StoreName, case: Case, of: dict[Case, list[Drained]]) -> list[str]:
    wall, cpu, wal = (_median(of[case], figure) for figure in _FIGURES.values())
    times = ratios(case, of)
    assert wall is not None
    said = [f"{1e6 / wall:,.0f}", _said(cpu, "µs"), _said(wal, "bytes")]
    shown = ["–" if ratio is None or case == "empty" else f"{ratio:.2f}×" for ratio in times.values()]
    cells = [cell.replace(",", " ") for pair in zip(said, shown, strict=True) for cell in pair]
    return [store, case, *cells, _verdict(case, times)]


def _said(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{value:,.0f} {unit}"


def _verdict(case: Case, times: dict[str, float | None]) -> str:
    if case == "empty":
        return ""
    above = [name for name, ratio in times.items() if ratio is not None and ratio > TIMES_MAX]
    return f"{', '.join(above)} above {TIMES_MAX}" if above else "ok"


def _median(drained: list[Drained], figure: _Figure) -> float | None:
    values = [value for each in drained if (value := figure(each)) is not None]
    return statistics.median(values) if values else None


def _ratio(ours: list[Drained], empty: list[Drained], figure: _Figure) -> float | None:
    """None where there is nothing to divide by: no server, or a run too short for its clock."""
    pairs = [(figure(our), figure(base)) for our, base in zip(ours, empty, strict=True)]
    times = [our / base for our, base in pairs if our is not None and base]
    return statistics.median(times) if times else None
