"""SQL lives in `.sql` files as named blocks; a manifest names them all, so a typo is an import error.

    -- name: claim_keys
    SELECT …

A block may hold one group of placeholders marked `/* each row */`: `for_rows` repeats it, because one statement with
many rows beats many statements (and lets go of the interpreter lock once instead of once a row).
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from typing import Final, TypeVar

from msgspec import Struct, structs

M = TypeVar("M", bound=Struct)

_NAME: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_ROW: Final = re.compile(r"(\([?,\s]+\)) /\* each row \*/")


def load(package: str, manifest: type[M]) -> M:
    """The blocks of every file in the package's `sql` folder, as the manifest's fields; refuses when names differ."""
    blocks: dict[str, str] = {}
    for file in files(package).joinpath("sql").iterdir():
        _add(blocks, file.name, file.read_text(encoding="utf-8"))
    missing = sorted(field.name for field in structs.fields(manifest) if field.required and field.name not in blocks)
    unknown = sorted(blocks.keys() - set(manifest.__struct_fields__))
    if missing or unknown:
        raise ImportError(f"the SQL blocks in {package} do not fit {manifest.__name__}: {missing=} {unknown=}")
    return manifest(**blocks)


@lru_cache(maxsize=1024)
def for_rows(block: str, rows: int) -> str:
    """The block with its marked group of placeholders repeated `rows` times."""
    head, group, tail = _ROW.split(block)
    return head + ", ".join([group] * rows) + tail


def chunk_sizes(rows: int, largest: int) -> list[int]:
    """`rows` as a sum of powers of two up to `largest`: few distinct statements, so each is prepared only once."""
    whole, rest = divmod(rows, largest)
    return [largest] * whole + [1 << bit for bit in reversed(range(largest.bit_length())) if rest & 1 << bit]


def _add(blocks: dict[str, str], file: str, text: str) -> None:
    header, *parts = _NAME.split(text)
    if any(line and not line.startswith("--") for line in header.splitlines()):
        raise ImportError(f"{file} has SQL before its first '-- name:' line")
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if name in blocks:
            raise ImportError(f"{file} defines the SQL block {name!r} a second time")
        blocks[name] = body.strip()
