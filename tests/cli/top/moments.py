"""Snapshots to draw: a quiet store, and a busy one."""

from __future__ import annotations

from datetime import UTC, datetime

from ropewalk.cli.top.snapshot import FailureLine, QueueLine, Snapshot, TypeLine, WorkerLine
from ropewalk.domain.statistics.statistics import Latency
from ropewalk.domain.time import MINUTE, SECOND, to_instant

NOW = to_instant(datetime(2026, 5, 1, 12, 30, 15, tzinfo=UTC), "now")

QUIET = Snapshot(
    url="sqlite:///jobs.db",
    tenant="default",
    now=NOW,
    finished_per_second=0.0,
    submitted_per_second=0.0,
    line=(0.0,) * 30,
    slice_us=MINUTE,
    queues=(),
    types=(),
    workers=(),
    failures=(),
)


def queue(name: str, ready: int = 0, *, paused: bool = False, oldest_us: int | None = None) -> QueueLine:
    counts = {"ready": ready, "running": ready // 10, "delayed": 3, "retrying": 0, "pending": 0}
    return QueueLine(name=name, paused=paused, oldest_us=oldest_us, **counts)


def latency(p50_us: int, p99_us: int) -> Latency:
    return Latency(count=9, mean_us=p50_us, p50_us=p50_us, p90_us=p50_us, p95_us=p50_us, p99_us=p99_us, max_us=p99_us)


def job_type(name: str, finished: int, per_second: float, failed: int = 0) -> TypeLine:
    return TypeLine(
        name=name,
        finished=finished,
        finished_per_second=per_second,
        failed=failed,
        retried=2 * failed,
        run=latency(12_345, 456_789),
        wait=latency(850, 2_000_000),
    )


def worker(number: int, state: str = "alive", held: int = 8) -> WorkerLine:
    return WorkerLine(
        id=f"{number:016x}",
        where=f"host-{number}:4711",
        state=state,
        held=held,
        slots=8,
        silent_us=number * 3 * SECOND,
        up_us=number * 3600 * SECOND,
        serves="resize, send_mail",
    )


def failure(number: int) -> FailureLine:
    return FailureLine(
        at=NOW - number * SECOND,
        id=f"job-{number}",
        type="send_mail",
        state="retrying" if number % 2 else "dead_letter",
        error="ConnectionError: smtp.example.org does not answer, and neither does its neighbour in the other building",
    )


BUSY = Snapshot(
    url="postgresql://shop:***@db/shop",
    tenant="acme",
    now=NOW,
    finished_per_second=123.4,
    submitted_per_second=0.5,
    line=tuple(float(number) for number in range(30)),
    slice_us=MINUTE,
    queues=(
        queue("default", 12_345, oldest_us=72 * SECOND),
        queue("mail", 40, paused=True, oldest_us=2_345_678),
        queue("re\aports"),
        queue("日本語のキュー", 1),
        queue("a-queue-with-a-name-that-is-far-too-long-for-any-table-on-any-screen"),
    ),
    types=(
        job_type("resize", 1_234_567, 99.96),
        job_type("send_mail", 950, 0.25, failed=7),
        job_type("report", 1, 0.0),
    ),
    workers=(worker(1), worker(2, "draining", 0), worker(3, "dead")),
    failures=tuple(failure(number) for number in range(10)),
    next_fire=("nightly", NOW + 600 * SECOND),
)
