"""Runs the workloads, everybody in turn, and condenses the runs into results.

Rounds are interleaved and begin with another subject each, so a machine that slows down or speeds up in between hits
all alike; a ratio is always taken within one round, and the median of the rounds is what counts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

from benchmarks import server
from benchmarks.peers.known import Peer
from benchmarks.result import Result
from benchmarks.run import prepared
from benchmarks.server import Server
from benchmarks.subjects.subject import StoreName
from benchmarks.workloads.workload import Workload

T = TypeVar("T")
Teller: TypeAlias = Callable[[str], None]
"""hears what is going on"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    rounds: int = 3
    quick: bool = False
    jobs: int | None = None
    """overrides the size of every workload"""
    directory: Path | None = None
    peers: tuple[Peer, ...] = ()

    def size_of(self, workload: Workload, peer: Peer | None = None) -> int:
        jobs = self.jobs or (workload.quick_jobs if self.quick else workload.jobs)
        return jobs if peer is None or peer.jobs_max is None else min(jobs, peer.jobs_max)

    def peers_of(self, store: StoreName, workload: Workload) -> list[Peer]:
        return [peer for peer in self.peers if peer.store == store and workload.suits(peer)]


async def measure(chosen: list[tuple[StoreName, Workload]], settings: Settings, told: Teller) -> list[Result]:
    results = [Result(store, workload) for store, workload in chosen]
    for result in results:
        result.stand_beside(results)
    with server.started() if any(store == "postgres" for store, _ in chosen) else nullcontext() as postgres:
        for number in range(settings.rounds):
            for result in results:
                await _measure_once(result, number, settings, postgres, told)
    return results


async def _measure_once(result: Result, number: int, settings: Settings, postgres: Server | None, told: Teller) -> None:
    """Everybody who takes part, one after another."""
    store, workload = result.store, result.workload
    peers = {peer.name: peer for peer in settings.peers_of(store, workload)}
    for kind in in_turn((*workload.kinds, *peers), number):
        told(f"round {number + 1}/{settings.rounds}  {store} {workload.name}  {kind}")
        jobs, parent = settings.size_of(workload, peers.get(kind)), settings.directory
        async with prepared(kind, store, jobs=jobs, workers=workload.workers, parent=parent, server=postgres) as run:
            result.runs.setdefault(kind, []).append(await workload.procedure(run))


def in_turn(each: tuple[T, ...], number: int) -> tuple[T, ...]:
    """Round `number` begins with another one than the round before."""
    first = number % len(each)
    return each[first:] + each[:first]
