"""Names of test cases, which must be alike in every process that shares the tests out."""

from __future__ import annotations

import re


def shown(value: object) -> str:
    """The value as Python shows it, without addresses of memory: these differ from process to process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
