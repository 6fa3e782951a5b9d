"""This store's statements, checked against the manifest when this module is imported."""

from __future__ import annotations

import re
from typing import Final

from msgspec import structs

from ropewalk.backends.sql.blocks import load
from ropewalk.backends.sql.statements import Statements
from ropewalk.backends.sqlite.columns import PARTS

_JSON: Final = re.compile(r"\bjson\((coalesce\([\w.]+, '\{\}'\)|[\w.]+)\)")
_READABLE: Final = r"iif(json_valid(\1), json(\1), json_quote(CAST(\1 AS TEXT)))"
"""what is no JSON is told as the text it is, and refused where its row is decoded"""


def _loaded(*, careful: bool = False) -> Statements:
    return load("ropewalk.backends.sqlite", Statements, made=PARTS, careful=careful)


def _tolerant(statements: Statements) -> Statements:
    return Statements(**{name: _JSON.sub(_READABLE, block) for name, block in structs.asdict(statements).items()})


SQL: Final = _loaded()
CAREFUL: Final = _tolerant(_loaded(careful=True))
