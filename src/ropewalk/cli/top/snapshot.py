"""What there is to show at one moment: plain values, by the store's clock; and as the document of `--json`."""

from __future__ import annotations

from msgspec import Struct, structs

from ropewalk.domain.statistics.statistics import Latency
from ropewalk.domain.time import Instant, Span, to_datetime


class QueueLine(Struct, frozen=True, kw_only=True):
    name: str
    paused: bool
    ready: int
    running: int
    delayed: int
    retrying: int
    pending: int
    oldest_us: Span | None
    """for how long the first of those that are ready could have started"""


class TypeLine(Struct, frozen=True, kw_only=True):
    name: str
    finished: int
    finished_per_second: float
    """in the last seconds"""
    failed: int
    """for good: failed and dead-lettered"""
    retried: int
    run: Latency
    wait: Latency


class WorkerLine(Struct, frozen=True, kw_only=True):
    id: str
    where: str
    state: str
    """alive, draining or dead"""
    held: int
    slots: int
    silent_us: Span
    up_us: Span
    serves: str


class FailureLine(Struct, frozen=True, kw_only=True):
    at: Instant
    id: str
    type: str
    state: str
    error: str


class Snapshot(Struct, frozen=True, kw_only=True):
    url: str
    tenant: str
    now: Instant
    finished_per_second: float
    """in the last seconds; at the first look, since something happened"""
    submitted_per_second: float
    line: tuple[float, ...]
    """jobs finished per second, the last of it just now"""
    slice_us: Span
    queues: tuple[QueueLine, ...]
    types: tuple[TypeLine, ...]
    """what happened to them in that time, most finished first"""
    workers: tuple[WorkerLine, ...]
    failures: tuple[FailureLine, ...]
    """newest first"""
    next_fire: tuple[str, Instant] | None = None
    """the schedule that fires next, and when"""
    trouble: str | None = None
    """why this is not newer"""

    def total(self, what: str) -> int:
        """Of all queues: ready, running, delayed, retrying or pending."""
        found: int = sum(getattr(queue, what) for queue in self.queues)
        return found


def document(snapshot: Snapshot) -> dict[str, object]:
    """With times as every command gives them."""
    fires = snapshot.next_fire
    return {
        **structs.asdict(snapshot),
        "now": to_datetime(snapshot.now),
        "failures": [{**structs.asdict(each), "at": to_datetime(each.at)} for each in snapshot.failures],
        "next_fire": None if fires is None else {"name": fires[0], "at": to_datetime(fires[1])},
    }
