"""The trace context a job carries: a W3C `traceparent`, and after a space its `tracestate` where there is one."""

from __future__ import annotations

import re
from typing import Final

TRACEPARENT_LENGTH: Final = 55

_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(?: |$)"
)
_EVEN: Final = frozenset("02468ace")


def trace_ids(trace: str | None) -> tuple[str, str] | None:
    """(trace id, span id) in hex; None without a context, or with one of another form."""
    found = None if trace is None else _TRACEPARENT.match(trace)
    return None if found is None else (found[1], found[2])


def trace_flags(trace: str) -> int:
    """Of a context that has ids."""
    return int(trace[53:55], 16)


def is_dropped(trace: str) -> bool:
    """Whether its sender decided that nobody records it. Asked of every job: only a glance."""
    return trace[54:55] in _EVEN
