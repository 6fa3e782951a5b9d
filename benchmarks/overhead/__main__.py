"""`python -m benchmarks.overhead`: every level on every store, each between two runs with nothing on at all."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import machine
from benchmarks.overhead.levels import LEVELS, OFF, Level, drain
from benchmarks.subjects.subject import StoreName

PAGE: Final = Path(__file__).parents[1] / "OVERHEAD.md"
STORES: Final[tuple[StoreName, ...]] = ("memory", "sqlite")
TARGETS: Final = {"metrics": 0.03, "all": 0.15}
"""at most so much more than with nothing on"""


class Pair(NamedTuple):
    """Seconds a job: with the level on, and with nothing on just before and after."""

    on: float
    off: float

    @property
    def more(self) -> float:
        return self.on / self.off - 1


Figures = dict[tuple[StoreName, str], list[Pair]]


def main(arguments: list[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    facts = machine.look(asked.directory)
    print(facts)
    rounds, jobs = asked.rounds or (1 if asked.quick else 15), asked.jobs or (1_000 if asked.quick else 5_000)
    figures = asyncio.run(_measure(rounds, jobs, asked.directory))
    rows = [row for store in STORES for row in _rows(store, figures)]
    print("\n".join("  ".join(cell.ljust(10) for cell in row).rstrip() for row in [_HEADINGS, *rows]))
    if asked.write:
        PAGE.write_text(_page(rows, facts, rounds, jobs))
    return 0


async def _measure(rounds: int, jobs: int, directory: Path | None) -> Figures:
    figures: Figures = defaultdict(list)
    for number in range(rounds):
        for store in STORES:
            print(f"round {number + 1}/{rounds}  {store}", file=sys.stderr, flush=True)
            before = await drain(OFF, store, jobs, directory)
            for level in LEVELS:
                on = await drain(level, store, jobs, directory)
                after = await drain(OFF, store, jobs, directory)
                figures[store, level.name].append(Pair(on, (before + after) / 2))
                before = after
    return figures


def _rows(store: StoreName, figures: Figures) -> list[list[str]]:
    off = statistics.median(pair.off for level in LEVELS for pair in figures[store, level.name])
    return [[store, OFF.name, _micros(off), "", "", ""], *(_row(store, level, figures) for level in LEVELS)]


def _row(store: StoreName, level: Level, figures: Figures) -> list[str]:
    pairs = figures[store, level.name]
    more = sorted(pair.more for pair in pairs)
    median, target = statistics.median(more), TARGETS.get(level.name)
    return [
        store,
        level.name,
        _micros(statistics.median(pair.on for pair in pairs)),
        f"{median:+.1%}",
        f"{more[len(more) // 4]:+.1%} to {more[len(more) * 3 // 4]:+.1%}",
        "" if target is None else f"≤ {target:.0%} {'ok' if median <= target else 'above'}",
    ]


def _micros(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs"


_HEADINGS: Final = ["store", "on", "a job", "more", "half of all", "target"]


def _page(rows: list[list[str]], facts: machine.Machine, rounds: int, jobs: int) -> str:
    head = "| " + " | ".join(_HEADINGS) + " |\n|" + "---|" * len(_HEADINGS)
    lines = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    about = "\n".join(f"- **{level.name}** {level.about}" for level in (OFF, *LEVELS))
    return (
        "# What being watched costs\n\n"
        f"Written by `python -m benchmarks.overhead --write`: {rounds} rounds of {jobs} no-op jobs that are already\n"
        f"there, worker and client in one process ({facts}).\n"
        "Processor time of all threads. Every run stands between two with nothing on and is compared with their mean:\n"
        "`more` is the median of that over the rounds, with the middle half of them beside it. Jobs were enqueued one\n"
        "by one, so each has a trace of its own; the sampler is the SDK's parent-based one, spans go to its batch\n"
        "processor and are discarded there. A job that does anything takes longer, and its share is smaller.\n\n"
        f"{head}\n{lines}\n\n{about}\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description="What being watched costs.")
    parser.add_argument("--quick", action="store_true", help="one small round: a smoke run, not a measurement")
    parser.add_argument("--rounds", type=int, help="rounds (15; with --quick 1)")
    parser.add_argument("--jobs", type=int, help="jobs per run (5 000; with --quick 1 000)")
    parser.add_argument("--directory", type=Path, help="where stores are put (the system's temporary directory)")
    parser.add_argument("--write", action="store_true", help="write benchmarks/OVERHEAD.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
