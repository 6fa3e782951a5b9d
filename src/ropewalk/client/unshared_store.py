"""An app without a URL keeps its jobs in the memory of its process. A program is warned of this; a test is not.

A test is code that pytest or unittest runs. pytest sets environment variables, which programs that a test starts
inherit. unittest is recognised by a test case that runs in some thread. It would not be enough to check whether one of
them is imported, because many libraries import them.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from ropewalk.definitions.warn import warn
from ropewalk.errors import UnsharedStore

SET_BY_PYTEST: Final = ("PYTEST_CURRENT_TEST", "PYTEST_VERSION")
RUN_BY_UNITTEST: Final = ("unittest.case", "unittest.async_case")


def warn_unshared() -> None:
    """Warns that the jobs are only in this process, except in a test."""
    if not in_a_test():
        warn(
            "this app was given no URL, so its jobs are in the memory of this process: no other process can reach "
            'them, and they end with it. Give App(url), or set $ROPEWALK_URL; App("memory://") says that it is meant',
            UnsharedStore,
        )


def in_a_test() -> bool:
    """Whether pytest or unittest runs this code."""
    return any(name in os.environ for name in SET_BY_PYTEST) or _unittest_runs()


def _unittest_runs() -> bool:
    if RUN_BY_UNITTEST[0] not in sys.modules:
        return False
    for innermost in sys._current_frames().values():
        frame = innermost
        while frame is not None:
            if frame.f_globals.get("__name__") in RUN_BY_UNITTEST:
                return True
            frame = frame.f_back  # type: ignore[assignment]
    return False
