"""The policies that say how many jobs a worker runs and which one is next: `app.worker(concurrency=Balanced(20))`."""

from __future__ import annotations

from ropewalk.definitions.policies import Age, Balanced, Concurrency, Offer, Policy, Priority, RateLimited, Unlimited
from ropewalk.domain.limits.rate import Rate
from ropewalk.worker.policies.backlog import BacklogAlarm
from ropewalk.worker.policies.backpressure import AdaptiveDelay, Load

__all__ = [
    "AdaptiveDelay",
    "Age",
    "BacklogAlarm",
    "Balanced",
    "Concurrency",
    "Load",
    "Offer",
    "Policy",
    "Priority",
    "Rate",
    "RateLimited",
    "Unlimited",
]
