"""What there is to show at one moment: plain values, by the store's clock; and as the document of `--json`."""

from __future__ import annotations

from msgspec import Struct, structs

from ropewalk.domain.statistics.statistics import Latency
from ropewalk.domain.time import Instant, Span, to_datetime


class QueueLine(Struct, frozen=True, kw_only=True):
    """What a frame shows about one queue."""

    name: str
    paused: bool
    ready: int
    running: int
    delayed: int
    retrying: int
    pending: int
    oldest_us: Span | None
    """How long the oldest ready job has been ready, or None if none is ready."""


class TypeLine(Struct, frozen=True, kw_only=True):
    """What a frame shows about one job type."""

    name: str
    finished: int
    finished_per_second: float
    """Jobs that finished per second in the last seconds."""
    failed: int
    """Jobs that failed for good, dead letters included."""
    retried: int
    run: Latency
    wait: Latency


class WorkerLine(Struct, frozen=True, kw_only=True):
    """What a frame shows about one worker."""

    id: str
    where: str
    state: str
    """The word alive, draining or dead."""
    held: int
    slots: int
    silent_us: Span
    up_us: Span
    serves: str


class FailureLine(Struct, frozen=True, kw_only=True):
    """What a frame shows about one failed job."""

    at: Instant
    id: str
    type: str
    state: str
    error: str


class Snapshot(Struct, frozen=True, kw_only=True):
    """Everything that one frame shows."""

    url: str
    tenant: str
    now: Instant
    finished_per_second: float
    """Jobs that finished per second in the last seconds, or in the first snapshot since something happened."""
    submitted_per_second: float
    line: tuple[float, ...]
    """Finished jobs per second in each slice of the time span; the last one is the present rate."""
    slice_us: Span
    queues: tuple[QueueLine, ...]
    types: tuple[TypeLine, ...]
    """What happened to each type in the time span, the type with the most finished jobs first."""
    workers: tuple[WorkerLine, ...]
    failures: tuple[FailureLine, ...]
    """The newest failures, newest first."""
    next_fire: tuple[str, Instant] | None = None
    """The name of the schedule that fires next, and when."""
    trouble: str | None = None
    """The reason why this snapshot is not newer, or None."""

    def total(self, what: str) -> int:
        """Return a sum over all queues; `what` is ready, running, delayed, retrying or pending."""
        found: int = sum(getattr(queue, what) for queue in self.queues)
        return found


def document(snapshot: Snapshot) -> dict[str, object]:
    """Return the snapshot for JSON, with times in ISO 8601."""
    fires = snapshot.next_fire
    return {
        **structs.asdict(snapshot),
        "now": to_datetime(snapshot.now),
        "failures": [{**structs.asdict(each), "at": to_datetime(each.at)} for each in snapshot.failures],
        "next_fire": None if fires is None else {"name": fires[0], "at": to_datetime(fires[1])},
    }
