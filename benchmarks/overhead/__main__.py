"""`python -m benchmarks.overhead`: every level on every store, each between two runs with nothing on at all."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import machine, report, server
from benchmarks.overhead.levels import LEVELS, OFF, Cost, Level, drain, fresh
from benchmarks.subjects.subject import StoreName

PAGE: Final = Path(__file__).parents[1] / "OVERHEAD.md"
STORES: Final[tuple[StoreName, ...]] = ("memory", "sqlite", "postgres")
TARGETS: Final = {"metrics": 0.03, "all": 0.15}
"""at most so much more than with nothing on"""


class Pair(NamedTuple):
    """With the level on, and the mean of with nothing on just before and after."""

    on: Cost
    off: Cost

    @property
    def more(self) -> float:
        return self.on.cpu / self.off.cpu - 1

    @property
    def longer(self) -> float:
        return self.on.wall / self.off.wall - 1


Place = AbstractContextManager[str]
Figures = dict[tuple[StoreName, str], list[Pair]]


def main(arguments: list[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    facts = machine.look(asked.directory)
    print(facts)
    rounds, jobs = asked.rounds or (1 if asked.quick else 9), asked.jobs or (1_000 if asked.quick else 20_000)
    levels = [level for level in LEVELS if level.name in asked.levels]
    figures: Figures = defaultdict(list)
    for store in asked.only:
        with server.started() if store == "postgres" else nullcontext() as running:
            for number in range(rounds):
                print(f"{store}  round {number + 1}/{rounds}", file=sys.stderr, flush=True)
                asyncio.run(_round(store, levels, jobs, partial(fresh, store, running, asked.directory), figures))
    table = [_HEADINGS, *(row for store in asked.only for row in _rows(store, levels, figures))]
    print("\n".join(report.aligned(table)))
    if asked.write:
        PAGE.write_text(_page(table, facts, rounds, jobs))
    return 0


async def _round(
    store: StoreName, levels: Sequence[Level], jobs: int, place: Callable[[], Place], figures: Figures
) -> None:
    before = await drain(OFF, jobs, place())
    for level in levels:
        on = await drain(level, jobs, place())
        after = await drain(OFF, jobs, place())
        off = Cost((before.cpu + after.cpu) / 2, (before.wall + after.wall) / 2)
        figures[store, level.name].append(Pair(on, off))
        before = after


def _rows(store: StoreName, levels: Sequence[Level], figures: Figures) -> list[list[str]]:
    offs = [pair.off for level in levels for pair in figures[store, level.name]]
    return [[store, OFF.name, *_figures(offs), "", "", "", ""], *(_row(store, level, figures) for level in levels)]


def _row(store: StoreName, level: Level, figures: Figures) -> list[str]:
    pairs = figures[store, level.name]
    longer = sorted(pair.longer for pair in pairs)
    median, target = statistics.median(longer), TARGETS.get(level.name)
    return [
        store,
        level.name,
        *_figures([pair.on for pair in pairs]),
        f"{statistics.median(pair.more for pair in pairs):+.1%}",
        f"{median:+.1%}",
        f"{longer[len(longer) // 4]:+.1%} to {longer[len(longer) * 3 // 4]:+.1%}",
        "" if target is None else f"≤ {target:.0%} {'ok' if median <= target else 'above'}",
    ]


def _figures(costs: list[Cost]) -> list[str]:
    wall, cpu = map(statistics.median, zip(*costs, strict=True))
    return [f"{1 / wall:.0f}", f"{cpu * 1e6:.1f} µs"]


_HEADINGS: Final = ["store", "on", "jobs/s", "CPU a job", "more CPU", "longer", "half of all", "target"]


def _page(table: list[list[str]], facts: machine.Machine, rounds: int, jobs: int) -> str:
    about = "\n".join(f"- **{level.name}** {level.about}" for level in (OFF, *LEVELS))
    return (
        "# What being watched costs\n\n"
        f"Written by `python -m benchmarks.overhead --write`: {rounds} rounds of {jobs} no-op jobs that are already\n"
        f"there, worker and client in one process ({facts}).\n"
        "Every run stands between two with nothing on and is compared with their mean: `more CPU` is the median of\n"
        "that over the rounds by the processor time of all threads of this process, `longer` by the clock, with the\n"
        "middle half of the rounds beside it. The target is about the drain, so about the clock. Jobs were enqueued\n"
        "one by one, so each has a trace of its own; the sampler is the SDK's parent-based one, spans go to its batch\n"
        "processor and are discarded there. A job that does anything takes longer, and its share is smaller.\n\n"
        f"{report.markdown(table)}\n{about}\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description="What being watched costs.")
    parser.add_argument("--quick", action="store_true", help="one small round: a smoke run, not a measurement")
    parser.add_argument("--only", nargs="+", choices=STORES, default=STORES, metavar="STORE", help=", ".join(STORES))
    names = [level.name for level in LEVELS]
    parser.add_argument("--levels", nargs="+", choices=names, default=names, metavar="LEVEL", help=", ".join(names))
    parser.add_argument("--rounds", type=int, help="rounds (9; with --quick 1)")
    parser.add_argument(
        "--jobs", type=int, help="jobs per run (20 000: fewer, and a checkpoint of SQLite decides; with --quick 1 000)"
    )
    parser.add_argument("--directory", type=Path, help="where stores are put (the system's temporary directory)")
    parser.add_argument("--write", action="store_true", help="write benchmarks/OVERHEAD.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
