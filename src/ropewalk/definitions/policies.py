"""Concurrency policies, as people write them: how many jobs run at once in a worker, which of those at hand is next,
how many may start in a span of time. What a worker keeps while it follows one is in worker/policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from ropewalk.domain import checks
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.limits.rate import RATE_EXAMPLE, Algorithm, Rate
from ropewalk.domain.time import Seconds, to_datetime
from ropewalk.errors import InvalidInput

if TYPE_CHECKING:
    from ropewalk.definitions.job_types.job_type import JobType


CONCURRENCY_MAX: Final = 100_000
"""A worker prepares a slot for each job that may run at once; more than this is a mistake."""


class Unlimited(Struct, frozen=True):
    """As many as there are. Of a type: as many as the worker itself may run."""


class Ordered(Struct, frozen=True):
    """At most `max` at once; the next is chosen among the jobs at hand.

    At hand is what starts within 100 ms as far as measured. `ahead` keeps so many at hand whatever they take, to have
    more to choose from: for at most a second, then they are given back.
    """

    max: int
    ahead: int | None = None

    def __post_init__(self) -> None:
        checks.between(self.max, "max", 1, CONCURRENCY_MAX)
        checks.positive_or_none(self.ahead, "ahead")


class Priority(Ordered, frozen=True):
    """The highest priority next, without ageing; of equal ones the oldest."""


class Age(Ordered, frozen=True):
    """The oldest next, whatever its priority."""


class Balanced(Ordered, frozen=True):
    """Fair between the jobs' `fairness` labels: next is the label with the fewest running here; of equal ones the one
    that has waited longest for a turn. Within a label as by Priority. Jobs without a label share one turn."""


class RateLimited(Struct, frozen=True):
    """`RateLimited(100, 60)`: at most 100 start in any 60 seconds, in this worker.

    per: with it the rate holds for each key that it returns for a job apart (None: not counted), and `total` for all
    together. max: how many run at once; None is the worker's default of 10, for a type no bound of its own.
    """

    limit: int
    window: Seconds
    algorithm: Algorithm = "sliding"
    per: Callable[[Offer], str | None] | None = None
    total: Rate | None = None
    max: int | None = None

    def __post_init__(self) -> None:
        checks.positive(self.limit, "limit")
        checks.positive_span(self.window, "window")
        if self.max is not None:
            checks.between(self.max, "max", 1, CONCURRENCY_MAX)
        _ = self.rate  # refuses what a rate cannot be
        checks.function_or_none(self.per, "per")
        checks.instance_or_none(self.total, "total", Rate, RATE_EXAMPLE)
        if self.total is not None and self.per is None:
            raise InvalidInput("total= is for a rate per key: name the key with per=", field="total")

    @property
    def rate(self) -> Rate:
        return Rate(self.limit, self.window, self.algorithm)


Policy: TypeAlias = Unlimited | Priority | Age | Balanced | RateLimited
Concurrency: TypeAlias = int | Policy


def checked_concurrency(value: object, field: str) -> Concurrency:
    if isinstance(value, Unlimited | Priority | Age | Balanced | RateLimited):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise checks.wrong(field, value, "a whole number, at least 1, or a policy of ropewalk.policies")
    if value > CONCURRENCY_MAX:
        raise checks.wrong(field, value, f"at most {CONCURRENCY_MAX:,}, or ropewalk.policies.Unlimited()")
    return value


def most_at_once(concurrency: Concurrency) -> int | None:
    """None: no bound of its own."""
    if isinstance(concurrency, int):
        return concurrency
    return None if isinstance(concurrency, Unlimited) else concurrency.max


class Offer:
    def __init__(self, job: JobRecord, job_type: JobType[..., Any, Any]) -> None:
        self._job = job
        self._job_type = job_type
        self.type = job.type
        self.id = job.id
        self.queue = job.queue
        self.tenant = job.tenant
        self.priority = job.priority
        self.attempt = job.attempt
        """which attempt it would be"""
        self.max_attempts = job.max_attempts
        self.fairness = job.fairness
        self.tags: Mapping[str, str] = job.tags
        self.correlation_id = job.correlation_id
        self.workflow_id = job.workflow_id

    @property
    def created_at(self) -> datetime:
        return to_datetime(self._job.created_at)

    @property
    def scheduled_for(self) -> datetime:
        """since when it is ready"""
        return to_datetime(self._job.run_at)

    @cached_property
    def arguments(self) -> Mapping[str, object]:
        """Decoded when asked for. Raises InvalidInput where they do not fit the type."""
        return self._job_type.decode_input(self._job.input)
