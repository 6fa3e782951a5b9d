"""The statements of the SQLite store. They are checked against the manifest when this module is imported.

The careful statements let junk pass (backends/sql/damage.py); most of them are derived from the others here.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import structs

from ropewalk.backends.sql.blocks import load
from ropewalk.backends.sql.statements import Statements
from ropewalk.backends.sqlite.columns import PARTS

_JSON: Final = re.compile(r"\bjson\((coalesce\([\w.]+, '\{\}'\)|[\w.]+)\)")
_READABLE: Final = (
    r"iif(typeof(\1) = 'blob', json_quote(hex(\1)), iif(json_valid(\1), json(\1), json_quote(CAST(\1 AS TEXT))))"
)
"""Reads a column of JSON that may contain junk. Text that is no JSON becomes a JSON string and a BLOB its hexadecimal
digits, which the decoder of the row then refuses."""
_MAKES_JSON: Final = re.compile(r"\bjson_(?:group_)?(?:array|object)\(")
_COLUMN: Final = re.compile(r"(?!(?:NULL|TRUE|FALSE)$)[A-Za-z_]\w*(?:\.\w+)?|coalesce\([^?]+\)")
_NO_BLOB: Final = "iif(typeof({0}) = 'blob', json_object('blob', hex({0})), {0})"
"""Makes an object of a BLOB, because JSON cannot contain one; a decoder that expects a plain value refuses the
object."""
_NAME: Final = "iif(typeof({0}) = 'blob', hex({0}), {0})"
"""Makes text of a BLOB in a column whose values become the names in a JSON object."""


def _loaded(*, careful: bool = False) -> Statements:
    return load("ropewalk.backends.sqlite", Statements, generated=PARTS, careful=careful)


def _tolerant(statements: Statements) -> Statements:
    return Statements(**{name: _tolerant_block(block) for name, block in structs.asdict(statements).items()})


def _tolerant_block(block: str) -> str:
    return _JSON.sub(_READABLE, _without_blobs(block))


def _without_blobs(block: str) -> str:
    """Returns the block in a form in which columns that become elements of JSON may contain a BLOB."""
    found = _MAKES_JSON.search(block)
    if found is None:
        return block
    elements, rest = _elements(block[found.end() :])
    named = found[0] == "json_group_object("
    shown = ", ".join(
        _without_blobs(each)
        if _COLUMN.fullmatch(each) is None
        else (_NAME if named and not at else _NO_BLOB).format(each)
        for at, each in enumerate(map(str.strip, elements))
    )
    return f"{block[: found.end()]}{shown}{_without_blobs(rest)}"


def _elements(text: str) -> tuple[list[str], str]:
    """Returns the arguments of a call whose opening parenthesis is just before `text`, and the text behind them."""
    elements, begin, depth, quoted = list[str](), 0, 0, False
    for at, character in enumerate(text):
        if character == "'":
            quoted = not quoted
        elif quoted:
            continue
        elif character == "(":
            depth += 1
        elif character == ")" and depth:
            depth -= 1
        elif character in ",)" and not depth:
            elements.append(text[begin:at])
            begin = at + 1
            if character == ")":
                return elements, text[at:]
    raise ImportError(f"a SQL block does not close its parentheses: {text}")


_FEW_ROWS: Final = ("all_limits", "all_quotas")
"""Statements that refuse a BLOB even if they are not careful: SQLite may take a BLOB for a JSON null, which would read
as 'no limit'."""


def _healthy(statements: Statements) -> Statements:
    return structs.replace(statements, **{name: _without_blobs(getattr(statements, name)) for name in _FEW_ROWS})


SQL: Final = _healthy(_loaded())
CAREFUL: Final = _tolerant(_loaded(careful=True))
