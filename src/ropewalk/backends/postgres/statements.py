"""This store's statements, and the same for those who only look: without locks."""

from __future__ import annotations

import re
from typing import Final

from msgspec import structs

from ropewalk.backends._sql.blocks import load
from ropewalk.backends._sql.statements import Statements

_LOCK: Final = re.compile(r"\s+FOR UPDATE(?: OF \w+)?(?: SKIP LOCKED)?")


def without_locks(statements: Statements) -> Statements:
    return Statements(**{name: _LOCK.sub("", block) for name, block in structs.asdict(statements).items()})


SQL: Final = load("ropewalk.backends.postgres", Statements)
READING: Final = without_locks(SQL)
