"""The fleet-wide limit that a job type declares: `@job(limit=Limit(concurrency=5))`.

Workers write it to the store when they start. There it can be changed at run time, and such a change is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from ropewalk.domain import checks
from ropewalk.domain.limits.fleet_limit import ANY, EVERY_TENANT, FlowLimit
from ropewalk.domain.limits.rate import RATE_EXAMPLE, Rate
from ropewalk.domain.shown_values import shown
from ropewalk.domain.user_calls import guarded
from ropewalk.errors import InvalidInput

KeyOf: TypeAlias = Callable[[Mapping[str, object]], str]
"""A function that computes the key of a limit from the arguments of a job."""


class Limit(Struct, frozen=True, kw_only=True):
    """A limit on how many jobs of a type run at once or start in a span of time, over all workers and tenants together.

    >>> @job(limit=Limit(concurrency=5))                                            # of this type
    >>> @job(limit=Limit(key="stripe", rate=Rate(100, per=1)))                      # of all types that name the key
    >>> @job(limit=Limit(key=lambda given: given["customer"], concurrency=1))       # for each customer separately
    """

    concurrency: int | None = None
    """How many jobs may run at once."""
    rate: Rate | None = None
    """How many jobs may start in a span of time."""
    key: str | KeyOf | None = None
    """The key under which the jobs are counted, or a function that computes it; None counts them by their type."""

    def __post_init__(self) -> None:
        checks.positive_or_none(self.concurrency, "concurrency")
        checks.instance_or_none(self.rate, "rate", Rate, RATE_EXAMPLE)
        if isinstance(self.key, str):
            check_key(self.key, "key")
        elif self.key is not None:
            checks.function(self.key, "key")
        if self.concurrency is None and self.rate is None and not isinstance(self.key, str):
            raise InvalidInput("a Limit says nothing: give concurrency=, rate= or both", field="limit")

    @property
    def computed(self) -> bool:
        """Whether the key is computed from the arguments of each job."""
        return callable(self.key)

    def key_of(self, job_type: str, arguments: Mapping[str, object]) -> str | None:
        """The key under which a job of this type is counted. A computed key begins with the name of the type."""
        if not callable(self.key):
            return self.key
        key = guarded(self.key, arguments)
        if not isinstance(key, str) or not key:
            raise InvalidInput(
                f"key= of the limit of {job_type} returned {shown(key)}: return some text", field="limit"
            )
        return f"{job_type}:{key}"

    def of(self, job_type: str) -> FlowLimit | None:
        """The limit as a store keeps it; None if it only names a key."""
        if self.concurrency is None and self.rate is None:
            return None
        name = f"{job_type}:{ANY}" if callable(self.key) else self.key
        return FlowLimit(
            tenant=EVERY_TENANT,
            kind="type" if name is None else "key",
            name=name or job_type,
            concurrency=self.concurrency,
            rate=self.rate,
            declared=True,
        )


def limit_of(value: object, field: str) -> Limit:
    """The limit in `@job(limit=...)`, where text is a limit with this key alone. Raises InvalidInput."""
    if isinstance(value, Limit):
        return value
    return Limit(key=check_key(checks.text(value, field), field))


def check_key(key: str, field: str) -> str:
    """Check that this key names one limit, and not a family of limits. Raises InvalidInput."""
    checks.text(key, field)
    if key.endswith(ANY):
        raise InvalidInput(f"{field}={key!r} ends in {ANY!r}, which names a family: a job names one key", field=field)
    return key
