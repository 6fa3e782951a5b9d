"""`python -m benchmarks.overhead`: every level on every store, in interleaved rounds, beside nothing at all."""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final

from benchmarks import machine
from benchmarks.overhead.levels import LEVELS, OFF, Level, drain
from benchmarks.subjects.subject import StoreName

PAGE: Final = Path(__file__).parents[1] / "OVERHEAD.md"
STORES: Final[tuple[StoreName, ...]] = ("memory", "sqlite")
TARGETS: Final = {"metrics": 1.03, "all": 1.15}
"""at most so many times what it takes with nothing on"""

Figures = dict[tuple[StoreName, str], list[float]]


def main(arguments: list[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    facts = machine.look(asked.directory)
    print(facts)
    rounds, jobs = asked.rounds or (1 if asked.quick else 7), asked.jobs or (1_000 if asked.quick else 20_000)
    figures = asyncio.run(_measure(rounds, jobs, asked.directory))
    rows = [_row(store, level, figures) for store in STORES for level in LEVELS]
    print("\n".join("  ".join(cell.ljust(10) for cell in row).rstrip() for row in [_HEADINGS, *rows]))
    if asked.write:
        PAGE.write_text(_page(rows, facts, rounds, jobs))
    return 0


async def _measure(rounds: int, jobs: int, directory: Path | None) -> Figures:
    figures: Figures = defaultdict(list)
    for number in range(rounds):
        for store in STORES:
            for level in LEVELS if number % 2 == 0 else LEVELS[::-1]:
                print(f"round {number + 1}/{rounds}  {store} {level.name}", file=sys.stderr, flush=True)
                gc.collect()
                figures[store, level.name].append(await drain(level, store, jobs, directory))
    return figures


def _row(store: StoreName, level: Level, figures: Figures) -> list[str]:
    took, plain = figures[store, level.name], figures[store, OFF.name]
    ratio = statistics.median(took) / statistics.median(plain)
    fastest = min(took) / min(plain)
    target = TARGETS.get(level.name)
    judged = "" if target is None else f"≤ {target - 1:.0%} {'ok' if ratio <= target else 'above'}"
    return [
        store,
        level.name,
        f"{statistics.median(took) * 1e6:.1f} µs",
        f"{ratio - 1:+.1%}",
        f"{fastest - 1:+.1%}",
        judged,
    ]


_HEADINGS: Final = ["store", "on", "a job", "median", "fastest", "target"]


def _page(rows: list[list[str]], facts: machine.Machine, rounds: int, jobs: int) -> str:
    head = "| " + " | ".join(_HEADINGS) + " |\n|" + "---|" * len(_HEADINGS)
    lines = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    about = "\n".join(f"- **{level.name}** {level.about}" for level in LEVELS)
    return (
        "# What being watched costs\n\n"
        f"Written by `python -m benchmarks.overhead --write`: {rounds} interleaved rounds of {jobs} no-op jobs that\n"
        f"are already there, worker and client in one process ({facts}).\n"
        "Processor time of all threads, so that what else the machine does matters little; beside the medians the\n"
        "fastest rounds are compared. A job that does anything takes longer, and its share is smaller.\n\n"
        f"{head}\n{lines}\n\n{about}\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description="What being watched costs.")
    parser.add_argument("--quick", action="store_true", help="one small round: a smoke run, not a measurement")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (7; with --quick 1)")
    parser.add_argument("--jobs", type=int, help="jobs per run (20 000; with --quick 1 000)")
    parser.add_argument("--directory", type=Path, help="where stores are put (the system's temporary directory)")
    parser.add_argument("--write", action="store_true", help="write benchmarks/OVERHEAD.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
