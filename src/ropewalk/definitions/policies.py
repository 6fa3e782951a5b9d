"""The concurrency policies that users write, and the offers that their functions get.

A policy says how many jobs run at once in a worker, which of the claimed jobs starts next, and how many may start in a
span of time. The state of a worker that follows a policy is in worker/policies.
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
"""The highest concurrency: a worker prepares a slot for each job that may run at once, so a higher one is a mistake."""


class Unlimited(Struct, frozen=True):
    """A worker runs all jobs that there are; a type with this policy is bounded only by its worker's concurrency."""


class Ordered(Struct, frozen=True):
    """At most `max` jobs run at once, and the next one is chosen among the claimed jobs.

    A worker claims as many jobs as it expects to start within 100 ms.
    """

    max: int
    """How many jobs run at once."""
    ahead: int | None = None
    """How many claimed jobs to choose from, however long jobs take. One that has waited for a second is given back."""

    def __post_init__(self) -> None:
        checks.between(self.max, "max", 1, CONCURRENCY_MAX)
        checks.positive_or_none(self.ahead, "ahead")


class Priority(Ordered, frozen=True):
    """The job with the highest priority is next, without ageing; among equal ones it is the oldest."""


class Age(Ordered, frozen=True):
    """The oldest job is next, whatever its priority."""


class Balanced(Ordered, frozen=True):
    """The labels that jobs have as `fairness` share the worker: next is the label with the fewest running jobs.

    Among equal labels it is the one that has waited longest, and within a label the job that Priority would choose. All
    jobs without a label count as one label.
    """


class RateLimited(Struct, frozen=True):
    """At most `limit` jobs start in any `window` in one worker: `RateLimited(100, 60)`."""

    limit: int
    window: Seconds
    algorithm: Algorithm = "sliding"
    per: Callable[[Offer], str | None] | None = None
    """A function that computes a key; the rate then holds for each key. A job with the key None is not counted."""
    total: Rate | None = None
    """The rate for all keys together."""
    max: int | None = None
    """How many jobs run at once; None means the worker's default of 10, and for a type no bound of its own."""

    def __post_init__(self) -> None:
        checks.positive(self.limit, "limit")
        checks.positive_span(self.window, "window")
        if self.max is not None:
            checks.between(self.max, "max", 1, CONCURRENCY_MAX)
        _ = self.rate  # raises InvalidInput for a wrong rate
        checks.function_or_none(self.per, "per")
        checks.instance_or_none(self.total, "total", Rate, RATE_EXAMPLE)
        if self.total is not None and self.per is None:
            raise InvalidInput("total= is for a rate per key: name the key with per=", field="total")

    @property
    def rate(self) -> Rate:
        """The limit, the window and the algorithm as one rate."""
        return Rate(self.limit, self.window, self.algorithm)


Policy: TypeAlias = Unlimited | Priority | Age | Balanced | RateLimited
Concurrency: TypeAlias = int | Policy
"""How many jobs run at once: a number, or a policy."""


def checked_concurrency(value: object, field: str) -> Concurrency:
    """Check the value of `concurrency=`. Raises InvalidInput."""
    if isinstance(value, Unlimited | Priority | Age | Balanced | RateLimited):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise checks.wrong(field, value, "a whole number, at least 1, or a policy of ropewalk.policies")
    if value > CONCURRENCY_MAX:
        raise checks.wrong(field, value, f"at most {CONCURRENCY_MAX:,}, or ropewalk.policies.Unlimited()")
    return value


def most_at_once(concurrency: Concurrency) -> int | None:
    """How many jobs this concurrency lets run at once; None if it sets no bound."""
    if isinstance(concurrency, int):
        return concurrency
    return None if isinstance(concurrency, Unlimited) else concurrency.max


class Offer:
    """A claimed job that has not started, as the functions `accept=` and `per=` see it."""

    def __init__(self, job: JobRecord, job_type: JobType[..., Any, Any]) -> None:
        self._job = job
        self._job_type = job_type
        self.type = job.type
        self.id = job.id
        self.queue = job.queue
        self.tenant = job.tenant
        self.priority = job.priority
        self.attempt = job.attempt
        """The number of the attempt that would start."""
        self.max_attempts = job.max_attempts
        self.fairness = job.fairness
        self.tags: Mapping[str, str] = job.tags
        self.correlation_id = job.correlation_id
        self.workflow_id = job.workflow_id

    @property
    def created_at(self) -> datetime:
        """The moment at which the job was enqueued."""
        return to_datetime(self._job.created_at)

    @property
    def scheduled_for(self) -> datetime:
        """The moment from which the job may start."""
        return to_datetime(self._job.run_at)

    @cached_property
    def arguments(self) -> Mapping[str, object]:
        """The arguments, decoded on first use. Raises InvalidInput if they do not fit the type."""
        return self._job_type.decode_input(self._job.input)
