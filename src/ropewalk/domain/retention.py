"""Retention: how long finished jobs, their results and the statistics are kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec import Struct

from ropewalk.domain import checks
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.time import DAY, Instant, Seconds, Span, to_span


class Retention(Struct, frozen=True, kw_only=True):
    """How long finished jobs are kept after their end, by status. None keeps them for ever."""

    completed_us: Span | None = 7 * DAY
    failed_us: Span | None = 30 * DAY
    dead_letter_us: Span | None = 30 * DAY
    cancelled_us: Span | None = 7 * DAY
    results_us: Span | None = None
    """The result of a completed job is deleted this long after its end, even if the job is kept longer."""
    statistics_us: Span | None = 30 * DAY
    """The sums by hour, from which `app.stats()` answers about the past, are kept this long."""
    types: Mapping[str, Span | None] = {}
    """Jobs of the types named here are kept this long, whatever their status."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            if field != "types":
                checks.span_us_or_none(getattr(self, field), field)
        for name, span_us in checks.mapping(self.types, "types").items():
            checks.span_us_or_none(span_us, f"types[{name!r}]")

    @classmethod
    def of(
        cls,
        *,
        completed: Seconds | None = timedelta(days=7),
        failed: Seconds | None = timedelta(days=30),
        dead_letter: Seconds | None = timedelta(days=30),
        cancelled: Seconds | None = timedelta(days=7),
        results: Seconds | None = None,
        statistics: Seconds | None = timedelta(days=30),
        types: Mapping[str, Seconds | None] | None = None,
    ) -> Retention:
        """Makes a retention of seconds or timedeltas: `Retention.of(completed=timedelta(days=1), types={"audit":
        None})`."""
        return cls(
            completed_us=_span(completed, "completed"),
            failed_us=_span(failed, "failed"),
            dead_letter_us=_span(dead_letter, "dead_letter"),
            cancelled_us=_span(cancelled, "cancelled"),
            results_us=_span(results, "results"),
            statistics_us=_span(statistics, "statistics"),
            types={name: _span(value, f"types[{name!r}]") for name, value in _types(types).items()},
        )


def keep_for(retention: Retention, status: Status, job_type: str) -> Span | None:
    """Returns how long a job of this type and final status is kept after its end; None means for ever."""
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
    """Whether the retention of a finished job is over."""
    span = keep_for(retention, status, job_type)
    return span is not None and finished_at + span <= now


def _types(given: Mapping[str, Seconds | None] | None) -> Mapping[str, Any]:
    return {} if given is None else checks.mapping(given, "types")


def _span(value: Seconds | None, field: str) -> Span | None:
    return None if value is None else to_span(value, field)
