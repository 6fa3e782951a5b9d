"""RESULTS.md: a section a store. Writing replaces the sections of the stores that were measured and keeps the others.

So a long run with peers on one store need not be repeated for the rest; each section says on what it was measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import report
from benchmarks.harness import Settings
from benchmarks.machine import Machine
from benchmarks.peers.known import PEERS, Peer
from benchmarks.peers.versions import version
from benchmarks.result import Result
from benchmarks.workloads import WORKLOADS

PAGE: Final = Path(__file__).with_name("RESULTS.md")
STORES: Final = ("memory", "sqlite", "postgres")
_SECTION: Final = "\n## "


def write(results: list[Result], machine: Machine, settings: Settings, *, to: Path = PAGE) -> None:
    sections = _read(to.read_text()) if to.exists() else {}
    for store in dict.fromkeys(result.store for result in results):
        of_store = [result for result in results if result.store == store]
        sections[store] = _section(of_store, machine, settings)
    to.write_text(_head() + "".join(_SECTION + sections[store] for store in STORES if store in sections))


def _read(page: str) -> dict[str, str]:
    sections = page.split(_SECTION)[1:]
    return {section.partition("\n")[0]: section for section in sections}


def _head() -> str:
    about = "\n".join(f"- **{workload.name}** {workload.about}" for workload in WORKLOADS)
    return (
        "# Results\n\n"
        "Written by `python -m benchmarks --write`, a section a store: medians of interleaved rounds on one machine. "
        "Only the\nratios travel. The floor is a skeleton of the same queue without retries, heartbeats, results or "
        "history\n(benchmarks/floors/). No-op handlers, payload about 100 bytes, everything durable, every job counted."
        f"\n\n{about}\n"
    )


def _section(results: list[Result], machine: Machine, settings: Settings) -> str:
    said = f"{results[0].store}\n\nMedians of {settings.rounds} rounds on {machine}.\n\n"
    said += report.markdown([cells[1:] for cells in report.overview(results)])
    kinds = dict.fromkeys(kind for result in results for kind in result.peers)
    if kinds:
        said += "\n" + report.markdown(report.everybody(results)) + "\n"
        said += "\n".join(_about(PEERS[kind]) for kind in kinds) + "\n"
    return said


def _about(peer: Peer) -> str:
    unequal = "" if peer.equal else " (promises less: shown, not compared)"
    fewer = "" if peer.jobs_max is None else f"; at most {peer.jobs_max:,} jobs a run".replace(",", " ")
    return f"- **{peer.name}** {peer.package} {version(peer)}, {peer.settings}{fewer}{unequal}"
