"""The trace context a job carries: a W3C `traceparent`, and after a space its `tracestate` where there is one."""

from __future__ import annotations

import re
from typing import Final

TRACEPARENT_LENGTH: Final = 55

_EVEN: Final = frozenset("02468ace")
_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(?: |$)"
)


def unrecorded(trace: str) -> bool:
    """Whether its flags say that the sender did not have it recorded."""
    return trace[TRACEPARENT_LENGTH - 1 : TRACEPARENT_LENGTH] in _EVEN


def trace_ids(trace: str | None) -> tuple[str, str] | None:
    """(trace id, span id) in hex; None without a context, or with one of another form."""
    found = None if trace is None else traceparent(trace)
    return None if found is None else (found[0], found[1])


def traceparent(trace: str) -> tuple[str, str, str] | None:
    """(trace id, span id, flags) in hex; None with a context of another form."""
    found = _TRACEPARENT.match(trace)
    return None if found is None else (found[1], found[2], found[3])
