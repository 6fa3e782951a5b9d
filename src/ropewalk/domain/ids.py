"""UUIDv7: ids that sort by the time they were made, from a time and randomness handed in."""

from __future__ import annotations

from ropewalk.domain.instants import Instant

_VERSION = 7 << 76
_VARIANT = 2 << 62


def uuid7(now: Instant, counter: int, entropy: int) -> str:
    """Canonical text of a UUIDv7: 48 bits of ms, then `counter` (12 bits) and `entropy` (62 bits)."""
    value = (now // 1000) << 80 | _VERSION | (counter & 0xFFF) << 64 | _VARIANT | entropy & 0x3FFF_FFFF_FFFF_FFFF
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
