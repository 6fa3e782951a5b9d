"""How long a finished job is kept."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ropewalk.domain.instants import DAY, Instant, Span
from ropewalk.domain.states import Status


class Retention(Struct, frozen=True, kw_only=True):
    """None keeps for ever. `types` overrides by job type; `results_us` forgets a completed job's result earlier."""

    completed_us: Span | None = 7 * DAY
    failed_us: Span | None = 30 * DAY
    dead_letter_us: Span | None = 30 * DAY
    cancelled_us: Span | None = 7 * DAY
    results_us: Span | None = None
    types: Mapping[str, Span | None] = {}


def keep_for(retention: Retention, status: Status, job_type: str) -> Span | None:
    if job_type in retention.types:
        return retention.types[job_type]
    match status:
        case Status.COMPLETED:
            return retention.completed_us
        case Status.FAILED:
            return retention.failed_us
        case Status.DEAD_LETTER:
            return retention.dead_letter_us
        case Status.CANCELLED:
            return retention.cancelled_us
        case Status.WAITING | Status.RUNNING:
            raise AssertionError(f"a {status} job is not finished")


def is_over(retention: Retention, status: Status, job_type: str, finished_at: Instant, now: Instant) -> bool:
    span = keep_for(retention, status, job_type)
    return span is not None and finished_at + span <= now
