"""The list of all metrics with their names, help texts and labels. The guide contains this list, too, and a test
compares them."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]


class Metric(Struct, frozen=True, kw_only=True):
    """The description of one metric."""

    name: str
    help: str
    kind: Kind = "counter"
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """The upper bounds of the buckets of a histogram. One more bucket, without a bound, follows them."""


SPANS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
BATCHES: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
ATTEMPTS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 25.0, 100.0)


def _by_type(name: str, text: str) -> Metric:
    return Metric(name=f"ropewalk_jobs_{name}_total", help=text, labels=("type",))


ENQUEUED: Final = _by_type("enqueued", "Jobs accepted by the store from this process, duplicates not counted.")
STARTED: Final = _by_type("started", "Attempts whose handler began.")
COMPLETED: Final = _by_type("completed", "Jobs that ended in success.")
FAILED: Final = _by_type("failed", "Jobs that ended with a permanent error, or behind dependencies that failed.")
RETRIED: Final = _by_type("retried", "Attempts that failed with another attempt to follow.")
DEAD_LETTERED: Final = _by_type("dead_lettered", "Jobs that used up their attempts or crashes.")
CANCELLED: Final = _by_type("cancelled", "Jobs that were cancelled.")
EXPIRED: Final = _by_type("expired", "Jobs whose deadline passed.")
RECLAIMED: Final = _by_type("reclaimed", "Attempts lost with their worker or process whose job runs again.")
GIVEN_BACK: Final = Metric(
    name="ropewalk_jobs_given_back_total",
    help="Attempts given back: deferred, suspended or released.",
    labels=("type", "why"),
)


def _spans(name: str, text: str) -> Metric:
    return Metric(name=f"ropewalk_job_{name}_seconds", help=text, kind="histogram", labels=("type",), buckets=SPANS)


WAIT: Final = _spans("wait", "From when a job could start until its handler began.")
RUN: Final = _spans("run", "How long a handler took.")
TOTAL: Final = _spans("total", "From when a job was enqueued until its end was settled.")
ATTEMPTS_USED: Final = Metric(
    name="ropewalk_job_attempts",
    help="Attempts a job had used when it ended.",
    kind="histogram",
    labels=("type",),
    buckets=ATTEMPTS,
)

FIRED: Final = Metric(
    name="ropewalk_schedule_fires_total",
    help="Fires of schedules that this process turned into jobs.",
    labels=("schedule",),
)
SETTLED: Final = Metric(
    name="ropewalk_settle_batch_jobs", help="Attempts settled in one commit.", kind="histogram", buckets=BATCHES
)
CLAIMED: Final = Metric(
    name="ropewalk_claim_batch_jobs", help="Jobs one claim brought.", kind="histogram", buckets=BATCHES
)
RENEWED: Final = Metric(name="ropewalk_lease_renewals_total", help="Leases renewed.")
STALE: Final = Metric(
    name="ropewalk_stale_writes_total", help="Settlements the store refused because the lease was gone."
)
LAG: Final = Metric(
    name="ropewalk_loop_lag_seconds",
    help="How late a worker's event loop is: a handler that blocks it shows here.",
    kind="histogram",
    buckets=SPANS,
)
RESTARTS: Final = Metric(
    name="ropewalk_loop_restarts_total", help="Background loops that failed and were started again.", labels=("loop",)
)
ERRORS: Final = Metric(
    name="ropewalk_errors_total", help="Errors that were reported and swallowed, by phase.", labels=("phase",)
)

READY: Final = Metric(
    name="ropewalk_queue_ready_jobs", help="Jobs ready for a worker, of all tenants.", kind="gauge", labels=("queue",)
)
OLDEST: Final = Metric(
    name="ropewalk_queue_oldest_ready_seconds",
    help="How long the oldest ready job has waited.",
    kind="gauge",
    labels=("queue",),
)
UNREGISTERED: Final = Metric(
    name="ropewalk_unregistered_ready_jobs",
    help="Ready jobs of types this app does not know.",
    kind="gauge",
    labels=("type",),
)

JOBS: Final = (ENQUEUED, STARTED, COMPLETED, FAILED, RETRIED, DEAD_LETTERED, CANCELLED, EXPIRED, RECLAIMED, GIVEN_BACK)
TIMES: Final = (WAIT, RUN, TOTAL, ATTEMPTS_USED)
WORKERS: Final = (FIRED, SETTLED, CLAIMED, RENEWED, STALE, LAG, RESTARTS, ERRORS)
IN_THE_STORE: Final = (READY, OLDEST, UNREGISTERED)
ALL: Final[tuple[Metric, ...]] = (*JOBS, *TIMES, *WORKERS, *IN_THE_STORE)
