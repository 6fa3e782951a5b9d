"""UUIDv7: ids that sort by the time they were made, from a time and randomness handed in."""

from __future__ import annotations

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
