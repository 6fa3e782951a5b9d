"""UUIDv7: ids that sort by the time they were made, from a time and randomness handed in.

The trace context a job carries: a W3C `traceparent`, and after a space its `tracestate` where there is one.
"""

from __future__ import annotations

import re
from typing import Final

from ropewalk.domain.time import Instant


def uuid7(now: Instant, counter: int, entropy: int) -> str:
    """Canonical text of a UUIDv7: 48 bits of ms, then `counter` (12 bits) and `entropy` (62 bits)."""
    return counted(time_part(now // 1000), counter, random_part(entropy))


# Apart, so that a maker of many ids writes each part no more often than it changes.


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
