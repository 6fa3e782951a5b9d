"""`python -m benchmarks`: choose, measure, show. `--only sqlite drain-1` names stores, workloads or both.

`--peers` puts the peers beside them (all that are known, or those named); `make bench-peers` installs them first.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from benchmarks import harness, machine, page, report
from benchmarks.harness import Settings
from benchmarks.peers.known import PEERS, Peer
from benchmarks.peers.process import missing
from benchmarks.subjects.subject import StoreName
from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.workload import Workload

STORES: tuple[StoreName, ...] = ("memory", "sqlite", "postgres")


def main(arguments: list[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    settings = Settings(
        rounds=asked.rounds or (1 if asked.quick else 3),
        quick=asked.quick,
        jobs=asked.jobs,
        directory=asked.directory,
        peers=() if asked.peers is None else choose_peers(asked.peers),
    )
    chosen = choose(asked.only)
    facts = machine.look(settings.directory)
    print(facts)
    results = asyncio.run(harness.measure(chosen, settings, _teller()))
    print(report.table(results, bars=sys.stdout.isatty()))
    if asked.json is not None:
        asked.json.write_text(report.as_json(results, facts, settings) + "\n")
    if asked.write:
        page.write(results, facts, settings)
    return 0


def choose(names: list[str]) -> list[tuple[StoreName, Workload]]:
    """Every workload on every store it runs on, as far as named; no names mean all."""
    known = {*STORES, *(workload.name for workload in WORKLOADS)}
    unknown = sorted(set(names) - known)
    if unknown:
        raise SystemExit(f"--only {' '.join(unknown)}: unknown; choose from {', '.join(sorted(known))}")
    stores = [store for store in STORES if store in names] or list(STORES)
    workloads = [workload for workload in WORKLOADS if workload.name in names] or list(WORKLOADS)
    return [(store, workload) for store in stores for workload in workloads if store in workload.stores]


def choose_peers(names: list[str]) -> tuple[Peer, ...]:
    """Those named, or all; each must be installed."""
    unknown = sorted(set(names) - set(PEERS))
    if unknown:
        raise SystemExit(f"--peers {' '.join(unknown)}: unknown; choose from {', '.join(PEERS)}")
    peers = tuple(PEERS[name] for name in names or PEERS)
    absent = [peer.name for peer in peers if missing(peer)]
    if absent:
        raise SystemExit(f"--peers {' '.join(absent)}: not installed; `make bench-peers` installs them and measures")
    return peers


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure ropewalk against its floors.")
    parser.add_argument("--quick", action="store_true", help="one short round of each: a smoke run, not a measurement")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="stores and workloads to run")
    parser.add_argument("--peers", nargs="*", metavar="PEER", help="measure these beside it (none named: all)")
    parser.add_argument("--rounds", type=_positive, help="interleaved rounds (3; with --quick 1)")
    parser.add_argument("--jobs", type=_positive, help="jobs per run, instead of each workload's own size")
    parser.add_argument("--directory", type=Path, help="where files are put (the system's temporary directory)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--write", action="store_true", help="write benchmarks/RESULTS.md")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} must be at least 1")
    return number


def _teller() -> harness.Teller:
    """On a terminal one line that is written over and over; elsewhere a line each."""
    if not sys.stderr.isatty():
        return lambda line: print(line, file=sys.stderr, flush=True)
    return lambda line: print(f"\r\x1b[K{line}", end="\r", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
