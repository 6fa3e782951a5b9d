"""Ids of jobs and of traces.

The id of a job is a UUIDv7, made from a given time and randomness, so that ids sort by the time at which they were
made. The trace context of a job is a W3C `traceparent`, followed by a space and the `tracestate` if there is one.
"""

from __future__ import annotations

import re
from typing import Final

from ropewalk.domain.time import Instant


def uuid7(now: Instant, counter: int, entropy: int) -> str:
    """Returns the canonical text of a UUIDv7: 48 bits of ms, then `counter` (12 bits) and `entropy` (62 bits)."""
    return counted(time_part(now // 1000), counter, random_part(entropy))


# These parts have functions of their own, so that a caller that makes many ids formats each part only when it changes.


def time_part(ms: int) -> str:
    return f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-"


def random_part(entropy: int) -> str:
    return f"-{0x8000 | entropy >> 48 & 0x3FFF:04x}-{entropy & 0xFFFF_FFFF_FFFF:012x}"


def counted(time: str, counter: int, random: str) -> str:
    return f"{time}{0x7000 | counter & 0xFFF:04x}{random}"


TRACEPARENT_LENGTH: Final = 55

_EVEN: Final = frozenset("02468ace")
_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(?: |$)"
)


def unrecorded(trace: str) -> bool:
    """Whether the flags of a trace context say that the sender did not record the trace."""
    return trace[TRACEPARENT_LENGTH - 1 : TRACEPARENT_LENGTH] in _EVEN


def trace_ids(trace: str | None) -> tuple[str, str] | None:
    """Returns (trace id, span id) in hexadecimal; None if there is no trace context, or it has another form."""
    found = None if trace is None else traceparent(trace)
    return None if found is None else (found[0], found[1])


def traceparent(trace: str) -> tuple[str, str, str] | None:
    """Returns (trace id, span id, flags) in hexadecimal; None if the trace context has another form."""
    found = _TRACEPARENT.match(trace)
    return None if found is None else (found[1], found[2], found[3])
