"""`python -m benchmarks.workflows`: measure every shape at every size, in interleaved rounds, and show how it grows."""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final

from benchmarks import machine
from benchmarks.workflows.shapes import PLAIN, SHAPES, Shape, measure

PAGE: Final = Path(__file__).parents[1] / "WORKFLOWS.md"
GROUP_TARGET: Final = 1.5

Figures = dict[tuple[str, int], list[float]]


def main(arguments: list[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    facts = machine.look(asked.directory)
    print(facts)
    rounds = asked.rounds or (1 if asked.quick else 3)
    figures = asyncio.run(_measure(rounds, quick=asked.quick, directory=asked.directory))
    rows = [_row(shape, size, figures) for shape in SHAPES for size in _sizes(shape, quick=asked.quick)]
    print(_table(rows))
    if asked.write:
        PAGE.write_text(_page(rows, facts, rounds))
    return 0


async def _measure(rounds: int, *, quick: bool, directory: Path | None) -> Figures:
    figures: Figures = defaultdict(list)
    for number in range(rounds):
        for shape in SHAPES:
            for size in _sizes(shape, quick=quick):
                print(f"round {number + 1}/{rounds}  {shape.name} {size}", file=sys.stderr, flush=True)
                figures[shape.name, size].append(await measure(shape, size, directory))
    return figures


def _sizes(shape: Shape, *, quick: bool) -> list[int]:
    return list(shape.quick_sizes if quick else shape.sizes)


def _row(shape: Shape, size: int, figures: Figures) -> list[str]:
    took = figures[shape.name, size]
    ratio = ""
    plain = figures.get((PLAIN.name, size))
    if shape.compared and plain is not None:
        within_rounds = statistics.median(ours / theirs for ours, theirs in zip(took, plain, strict=True))
        ratio = f"{within_rounds:.2f}×"
        if shape.name == "group":
            ratio += " (ok)" if within_rounds <= GROUP_TARGET else f" (above {GROUP_TARGET})"
    cells = f"{size:,}".replace(",", " ")
    return [shape.name, cells, f"{statistics.median(took) * 1e6:,.0f} µs".replace(",", " "), ratio]


_HEADINGS = ["shape", "jobs", "a job", "of a plain job"]


def _table(rows: list[list[str]]) -> str:
    every = [_HEADINGS, *rows]
    widths = [max(len(row[column]) for row in every) for column in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in every
    )


def _page(rows: list[list[str]], facts: machine.Machine, rounds: int) -> str:
    head = "| " + " | ".join(_HEADINGS) + " |\n|" + "---|" * len(_HEADINGS)
    lines = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    about = "\n".join(f"- **{shape.name}** {shape.about}" for shape in SHAPES)
    return (
        "# Workflows: what composing costs\n\n"
        f"Written by `python -m benchmarks.workflows --write`: medians of {rounds} interleaved rounds on one machine\n"
        f"({facts}), SQLite, everything durable, worker and client in one process. Only the ratios travel.\n\n"
        f"{head}\n{lines}\n\n{about}\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workflows", description="What composing jobs costs.")
    parser.add_argument("--quick", action="store_true", help="one small round: a smoke run, not a measurement")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (3; with --quick 1)")
    parser.add_argument("--directory", type=Path, help="where stores are put (the system's temporary directory)")
    parser.add_argument("--write", action="store_true", help="write benchmarks/WORKFLOWS.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
