"""This store's SQL, checked against the manifest when this module is imported."""

from __future__ import annotations

from typing import Final

from ropewalk.backends.sql.blocks import load
from ropewalk.backends.sql.statements import Statements

SQL: Final = load("ropewalk.backends.sqlite", Statements)
