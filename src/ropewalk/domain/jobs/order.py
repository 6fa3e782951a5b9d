"""In which order ready jobs are claimed, as two static sort keys.

With ageing (the default) each point of priority is worth 36 s of waiting: HIGH (100) is an hour ahead of NORMAL
and nothing starves. Without, priority decides strictly. Either way the key is fixed when the job becomes due,
so an index answers it and nothing is re-sorted as time passes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from ropewalk.domain.jobs.flags import STRICT_ORDER
from ropewalk.domain.time import SECOND, Instant, Span

AGEING_STEP: Final[Span] = 36 * SECOND


class Priority(IntEnum):
    CRITICAL = 200
    HIGH = 100
    NORMAL = 0
    LOW = -100
    BULK = -200


class OrderKey(NamedTuple):
    prio_key: int
    time_key: Instant


def order_key(priority: int, run_at: Instant, flags: int) -> OrderKey:
    if flags & STRICT_ORDER:
        return OrderKey(-priority, run_at)
    return OrderKey(0, run_at - priority * AGEING_STEP)
