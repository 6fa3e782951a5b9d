"""The trace context a job carries: a W3C `traceparent`, and after a space its `tracestate` where there is one."""

from __future__ import annotations

import re
from typing import Final

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


def trace_ids(trace: str | None) -> tuple[str, str] | None:
    """(trace id, span id) in hex; None without a context, or with one of another form."""
    found = None if trace is None else _TRACEPARENT.match(trace)
    return None if found is None else (found[1], found[2])
