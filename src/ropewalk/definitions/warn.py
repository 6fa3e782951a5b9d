"""Warnings about what the user's own code does."""

from __future__ import annotations

import sys
import warnings
from types import FrameType
from typing import Final

PASSED_OVER: Final = ("ropewalk.", "asyncio.", "concurrent.futures.", "threading", "contextlib")


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that led here."""
    inner = sys._getframe(1)
    frame: FrameType | None = inner
    while frame is not None and frame.f_globals.get("__name__", "").startswith(PASSED_OVER):
        frame = frame.f_back
    found = inner if frame is None else frame
    warnings.warn_explicit(message, category, found.f_code.co_filename, found.f_lineno)
