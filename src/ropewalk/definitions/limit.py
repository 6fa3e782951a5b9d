"""A fleet-wide limit as code declares it: `@job(limit=Limit(concurrency=5))`. Workers put it into the store when they
start; there it may be changed at run time, and what was changed there stays.
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


class Limit(Struct, frozen=True, kw_only=True):
    """How many jobs of a type run at once and start in a span of time, over all workers and tenants together.

    >>> @job(limit=Limit(concurrency=5))                                            # of this type
    >>> @job(limit=Limit(key="stripe", rate=Rate(100, per=1)))                      # of all types that name the key
    >>> @job(limit=Limit(key=lambda given: given["customer"], concurrency=1))       # for each customer separately
    """

    concurrency: int | None = None
    rate: Rate | None = None
    key: str | KeyOf | None = None

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
        return callable(self.key)

    def key_of(self, job_type: str, arguments: Mapping[str, object]) -> str | None:
        """The key a job of this type counts under. Those that are computed begin with the type's name."""
        if not callable(self.key):
            return self.key
        key = guarded(self.key, arguments)
        if not isinstance(key, str) or not key:
            raise InvalidInput(
                f"key= of the limit of {job_type} returned {shown(key)}: return some text", field="limit"
            )
        return f"{job_type}:{key}"

    def of(self, job_type: str) -> FlowLimit | None:
        """As a store keeps it; None where it only names a key."""
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
    """What `@job(limit=...)` was given: a key alone, or more."""
    if isinstance(value, Limit):
        return value
    return Limit(key=check_key(checks.text(value, field), field))


def check_key(key: str, field: str) -> str:
    checks.text(key, field)
    if key.endswith(ANY):
        raise InvalidInput(f"{field}={key!r} ends in {ANY!r}, which names a family: a job names one key", field=field)
    return key
