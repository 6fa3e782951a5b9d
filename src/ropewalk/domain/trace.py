"""The trace context a job carries: a W3C `traceparent`, and after a space its `tracestate` where there is one."""

from __future__ import annotations

import re
from typing import Final

TRACEPARENT_LENGTH: Final = 55

SAMPLING: Final = slice(54, 55)
"""the digit that says whether the sender had it recorded,"""
DROPPED: Final = frozenset("02468ace")
"""and what it is where nobody does. To be looked at for every job, hence without a call"""

_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(?: |$)"
)


def trace_ids(trace: str | None) -> tuple[str, str] | None:
    """(trace id, span id) in hex; None without a context, or with one of another form."""
    found = None if trace is None else traceparent(trace)
    return None if found is None else (found[0], found[1])


def traceparent(trace: str) -> tuple[str, str, str] | None:
    """(trace id, span id, flags) in hex; None with a context of another form."""
    found = _TRACEPARENT.match(trace)
    return None if found is None else (found[1], found[2], found[3])
