"""What a workload is: a procedure over a prepared run, its sizes, and what it should reach."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from benchmarks.measurement import Measurement
from benchmarks.peers.known import Peer
from benchmarks.run import Run
from benchmarks.subjects.subject import Kind, StoreName


@dataclass(frozen=True, slots=True)
class Target:
    """At least (rates) or at most (latencies) this: absolute, or as a multiple of something. Any of them will do.

    A start takes two commits, so on a slow disk no queue reaches an absolute latency: then the floor is the measure.
    """

    absolute: float | None = None
    of_floor: float | None = None
    of_best_peer: float | None = None
    """the best of those written in Python; judged only where peers were measured"""
    of_beside: float | None = None
    """a multiple of the workload it stands beside"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workload:
    name: str
    about: str
    procedure: Callable[[Run], Awaitable[Measurement]]
    jobs: int
    quick_jobs: int
    workers: int = 1
    """processes; on memory there is one, inside"""
    lower_is_better: bool = False
    stores: tuple[StoreName, ...] = ("memory", "sqlite", "postgres")
    kinds: tuple[Kind, ...] = ("ropewalk", "floor")
    beside: Workload | None = None
    """what it is compared with, in the same round"""
    needs_bulk: bool = False
    """measured only on peers that can take many jobs in one call"""
    targets: Mapping[StoreName, Target] | None = None

    def suits(self, peer: Peer) -> bool:
        """What not even the floor does, no peer is asked for."""
        return "floor" in self.kinds and (peer.has_bulk or not self.needs_bulk)
