"""Results as a table for people, as JSON for machines, as a page for the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from benchmarks.harness import Result, Settings
from benchmarks.machine import Machine

PAGE: Final = Path(__file__).with_name("RESULTS.md")
_BAR_CELLS: Final = 20
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_HEADINGS: Final = ("store", "workload", "ropewalk", "floor", "of floor", "target", "")


def table(results: list[Result], *, bars: bool) -> str:
    """Columns aligned; on a terminal with a bar that shows the ratio to the floor (full = equal)."""
    rows = [list(_HEADINGS), *(_row(result) for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if bars:
        width = max(len(line) for line in lines) + 2
        drawn = [_bar(result) for result in results]
        lines[1:] = [line.ljust(width) + bar for line, bar in zip(lines[1:], drawn, strict=True)]
    return "\n".join(lines)


def page(results: list[Result], machine: Machine, settings: Settings) -> str:
    """RESULTS.md."""
    head = "| " + " | ".join(_HEADINGS) + " |\n|" + "---|" * len(_HEADINGS)
    rows = "\n".join("| " + " | ".join(_row(result)) + " |" for result in results)
    about = "\n".join(
        f"- **{workload.name}** {workload.about}" for workload in dict.fromkeys(result.workload for result in results)
    )
    return (
        "# Results\n\n"
        f"Written by `python -m benchmarks --write`: medians of {settings.rounds} interleaved rounds on one machine\n"
        f"({machine}). Only the ratios travel.\n\n"
        f"{head}\n{rows}\n\n"
        "The floor is a skeleton of the same queue without retries, heartbeats, results or history "
        f"(benchmarks/floors/).\nNo-op handlers, payload about 100 bytes, every job counted.\n\n{about}\n"
    )


def as_json(results: list[Result], machine: Machine, settings: Settings) -> str:
    return json.dumps(
        {
            "machine": machine.as_dict(),
            "rounds": settings.rounds,
            "results": [
                {
                    "store": result.store,
                    "workload": result.workload.name,
                    "jobs": {kind: [run.jobs for run in runs] for kind, runs in result.runs.items()},
                    "medians": {kind: result.figures(kind) for kind in result.runs},
                    "runs": {kind: [run.figures for run in runs] for kind, runs in result.runs.items()},
                    "of_floor": result.ratio,
                    "target": {"absolute": result.target.absolute, "of_floor": result.target.of_floor},
                    "on_target": result.on_target,
                }
                for result in results
            ],
        },
        indent=2,
    )


def _row(result: Result) -> list[str]:
    verdict = {None: "", True: "ok", False: "below" if not result.workload.lower_is_better else "above"}
    return [
        result.store,
        result.workload.name,
        _figures(result.figures("ropewalk")),
        _figures(result.figures("floor")) if "floor" in result.runs else "–",
        "–" if result.ratio is None else f"{result.ratio:.2f}×",
        _target(result),
        verdict[result.on_target],
    ]


def _figures(figures: dict[str, float]) -> str:
    """`12 345 jobs/s`, or `1.2 / 3.4 / 5.6 ms` for the percentiles 50, 95 and 99."""
    if "jobs/s" in figures:
        return f"{figures['jobs/s']:,.0f} jobs/s".replace(",", " ")
    return " / ".join(f"{value:.1f}" for value in figures.values()) + " ms"


def _target(result: Result) -> str:
    sign = "≤" if result.workload.lower_is_better else "≥"
    unit = "ms p50" if result.workload.lower_is_better else "jobs/s"
    said: list[str] = []
    if result.target.absolute is not None:
        said.append(f"{sign} {result.target.absolute:,.0f} {unit}".replace(",", " "))
    if result.target.of_floor is not None:
        said.append(f"{sign} {result.target.of_floor:g} of floor")
    return " or ".join(said)


def _bar(result: Result) -> str:
    """How near to the floor: for latencies the floor's share of ours, so longer is better everywhere."""
    if result.ratio is None:
        return ""
    share = 1 / result.ratio if result.workload.lower_is_better else result.ratio
    eighths = round(min(1.0, share) * _BAR_CELLS * 8)
    return _EIGHTHS[-1] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
