"""Results as a table for people, as JSON for machines. page.py makes the page for the repository of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from benchmarks.harness import Settings
from benchmarks.machine import Machine
from benchmarks.peers.versions import version
from benchmarks.result import Result

_HEADINGS: Final = ("store", "workload", "ropewalk", "floor", "of floor", "best Python peer", "of it", "target", "")
_ABOUT_PEERS: Final = slice(5, 7)
_BAR_CELLS: Final = 20
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_NOTHING: Final = "–"


def table(results: list[Result], *, bars: bool) -> str:
    """Columns aligned; on a terminal with a bar that shows the ratio to the floor (full = equal). Peers below."""
    lines = aligned(overview(results))
    if bars:
        width = max(len(line) for line in lines) + 2
        lines[1:] = [line.ljust(width) + _bar(result) for line, result in zip(lines[1:], results, strict=True)]
    for store in dict.fromkeys(result.store for result in results if result.peers):
        lines += ["", *aligned(everybody([result for result in results if result.store == store]))]
    return "\n".join(lines)


def overview(results: list[Result]) -> list[list[str]]:
    """A row for each result under its headings; of peers only where there are any."""
    rows = [list(_HEADINGS), *map(_row, results)]
    if not any(result.peers for result in results):
        for cells in rows:
            del cells[_ABOUT_PEERS]
    return rows


def _row(result: Result) -> list[str]:
    verdict = {None: "", True: "ok", False: "below" if not result.workload.lower_is_better else "above"}
    return [
        result.store,
        result.workload.name,
        figures(result.figures("ropewalk")),
        figures(result.figures("floor")) if "floor" in result.runs else _NOTHING,
        _ratio(result.of_floor),
        _NOTHING if result.best_peer is None else f"{result.best_peer}: {figures(result.figures(result.best_peer))}",
        _ratio(result.of_best_peer),
        _target(result),
        verdict[result.on_target],
    ]


def everybody(results: list[Result]) -> list[list[str]]:
    """Of one store: a row for ropewalk, the floor and each peer, a column for each workload."""
    kinds = dict.fromkeys(kind for result in results for kind in result.runs)
    rows = [["", *(result.workload.name for result in results)]]
    for kind in kinds:
        cells = (figures(result.figures(kind)) if kind in result.runs else _NOTHING for result in results)
        rows.append([kind, *cells])
    return rows


def as_json(results: list[Result], machine: Machine, settings: Settings) -> str:
    return json.dumps(
        {
            "machine": machine.as_dict(),
            "rounds": settings.rounds,
            "peers": {peer.name: f"{peer.package} {version(peer)}, {peer.settings}" for peer in settings.peers},
            "results": [_as_dict(result) for result in results],
        },
        indent=2,
    )


def _as_dict(result: Result) -> dict[str, object]:
    target = result.target
    return {
        "store": result.store,
        "workload": result.workload.name,
        "jobs": {kind: [run.jobs for run in runs] for kind, runs in result.runs.items()},
        "medians": {kind: result.figures(kind) for kind in result.runs},
        "runs": {kind: [run.figures for run in runs] for kind, runs in result.runs.items()},
        "of_floor": result.of_floor,
        "best_peer": result.best_peer,
        "of_best_peer": result.of_best_peer,
        "of_beside": result.of_beside,
        "target": {
            "absolute": target.absolute,
            "of_floor": target.of_floor,
            "of_best_peer": target.of_best_peer,
            "of_beside": target.of_beside,
        },
        "on_target": result.on_target,
    }


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in rows]


def markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = ("| " + " | ".join(cells) + " |\n" for cells in rows)
    return head + "|" + "---|" * len(rows[0]) + "\n" + "".join(body)


def figures(of: dict[str, float]) -> str:
    """`12 345 jobs/s`, or `1.2 / 3.4 / 5.6 ms` for the percentiles 50, 95 and 99."""
    if "jobs/s" in of:
        return f"{of['jobs/s']:,.0f} jobs/s".replace(",", " ")
    return " / ".join(f"{value:.1f}" for value in of.values()) + " ms"


def _ratio(ratio: float | None) -> str:
    return _NOTHING if ratio is None else f"{ratio:.2f}×"


def _target(result: Result) -> str:
    """Every way to reach it; one beside another workload also with what was reached."""
    target, sign = result.target, "≤" if result.workload.lower_is_better else "≥"
    unit = "ms p50" if result.workload.lower_is_better else "jobs/s"
    said: list[str] = []
    if target.absolute is not None:
        said.append(f"{sign} {target.absolute:,.0f} {unit}".replace(",", " "))
    if target.of_floor is not None:
        said.append(f"{sign} {target.of_floor:g} of floor")
    if target.of_best_peer is not None:
        said.append(f"{sign} {target.of_best_peer:g} of best peer")
    if target.of_beside is not None and result.workload.beside is not None:
        reached = "" if result.of_beside is None else f" (is {result.of_beside:.1f})"
        said.append(f"{sign} {target.of_beside:g} of {result.workload.beside.name}{reached}")
    return " or ".join(said)


def _bar(result: Result) -> str:
    """How near to the floor: for latencies the floor's share of ours, so longer is better everywhere."""
    if result.of_floor is None:
        return ""
    share = 1 / result.of_floor if result.workload.lower_is_better else result.of_floor
    eighths = round(min(1.0, share) * _BAR_CELLS * 8)
    return _EIGHTHS[-1] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
