"""One bitmask per job that keeps a plain job out of every table it does not use."""

from __future__ import annotations

from typing import Final

HAS_DEPENDANTS: Final = 1
GROUPED: Final = 2
KEYED: Final = 4
LIMITED: Final = 8
CALLBACK: Final = 16
ON_FAILURE: Final = 32
STEPPED: Final = 64
STRICT_ORDER: Final = 128
"""priority without ageing; concerns order only, so such a job still settles as a plain one"""

SETTLES_ALONE: Final = STRICT_ORDER
"""a completed job with no other flag than these touches nothing but its own row"""


def settles_alone(flags: int) -> bool:
    return flags & ~SETTLES_ALONE == 0
