"""Warnings that point to the line of the user's code that caused them."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Final

SKIPPED_MODULES: Final = ("ropewalk.", "asyncio.", "concurrent.futures.", "threading", "contextlib")
"""Modules whose frames are not the user's code."""


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line of the user's code that led to this call."""
    inner = sys._getframe(1)
    frame: FrameType | None = inner
    while frame is not None and frame.f_globals.get("__name__", "").startswith(SKIPPED_MODULES):
        frame = frame.f_back
    found = inner if frame is None else frame
    warnings.warn_explicit(message, category, found.f_code.co_filename, found.f_lineno)
