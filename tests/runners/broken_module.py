"""Cannot be imported twice: the first import (by a test) works, the one in the handler's process does not."""

from __future__ import annotations

import os

from ropewalk import job

if os.environ.get("ROPEWALK_TEST_BREAK_IMPORT"):
    raise RuntimeError("no licence file")


@job(executor="process")
def unreachable() -> None: ...
