"""SQL lives in `.sql` files as named blocks; a manifest names them all, so a typo is an import error.

    -- name: claim_keys
    SELECT …

A block may hold one group of placeholders marked `/* each row */`: `for_rows` repeats it, because one statement with
many rows beats many statements (and lets go of the interpreter lock once instead of once a row). What several blocks
have in common is a part (`-- part: columns` instead of `-- name:`), and they say `/* see columns */` where it belongs.
Parts may also be made in Python, as lists of columns are. Where blocks differ in a value, the part has a place for it,
such as `{now}`, and each block says in a line of its own what belongs there:

    UPDATE job SET
        /* see leased
        now = %(4)s
        */

Where junk in a column would make a statement fail, it has a careful variant, which is slower and does not (damage.py):
a block or part `columns_carefully` takes the place of `columns` in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final, TypeVar

from msgspec import Struct, structs

M = TypeVar("M", bound=Struct)

_NAME: Final = re.compile(r"^-- (name|part): (\w+)\n", re.MULTILINE)
_SEE: Final = re.compile(r"/\* see (\w+)((?:\n *\w+ = .+)*)\s*\*/")
_GIVEN: Final = re.compile(r"^ *(\w+) = (.+?) *$", re.MULTILINE)
_OPEN: Final = re.compile(r"\{(\w+)\}")
_THEN: Final = re.compile(r"^-- then$", re.MULTILINE)
_CAREFULLY: Final = "_carefully"
_ROW: Final = re.compile(r"(\([?,\s]+\)) /\* each row \*/")


def load(package: str, manifest: type[M], *, made: Mapping[str, str] | None = None, careful: bool = False) -> M:
    """The blocks of every file in the package's `sql` folder, as the manifest's fields; refuses when names differ.

    `made` are parts that are made in Python.
    """
    blocks, parts = _read(package, made)
    _choose_variants(blocks, careful=careful)
    _choose_variants(parts, careful=careful)
    missing = sorted(field.name for field in structs.fields(manifest) if field.required and field.name not in blocks)
    unknown = sorted(blocks.keys() - set(manifest.__struct_fields__))
    if missing or unknown:
        raise ImportError(f"the SQL blocks in {package} do not fit {manifest.__name__}: {missing=} {unknown=}")
    return manifest(**{name: _whole(block, blocks | parts) for name, block in blocks.items()})


def part(package: str, name: str, *, made: Mapping[str, str] | None = None) -> str:
    """One part by itself."""
    blocks, parts = _read(package, made)
    return _whole(parts[name], blocks | parts)


@lru_cache(maxsize=1024)
def for_rows(block: str, rows: int) -> str:
    """The block with its marked group of placeholders repeated `rows` times."""
    head, group, tail = _ROW.split(block)
    return head + ", ".join([group] * rows) + tail


@lru_cache(maxsize=512)
def parts_of(block: str) -> tuple[str, ...]:
    """The statements of a block, between lines that say `-- then`. All of them get the same values."""
    return tuple(part.strip() for part in _THEN.split(block))


def chunk_sizes(rows: int, largest: int) -> list[int]:
    """`rows` as a sum of powers of two up to `largest`: few distinct statements, so each is prepared only once."""
    whole, rest = divmod(rows, largest)
    return [largest] * whole + [1 << bit for bit in reversed(range(largest.bit_length())) if rest & 1 << bit]


def _choose_variants(blocks: dict[str, str], *, careful: bool) -> None:
    """Without the careful variants, or with each in the place of what it is a variant of."""
    for name in [name for name in blocks if name.endswith(_CAREFULLY)]:
        variant, of = blocks.pop(name), name.removesuffix(_CAREFULLY)
        if of not in blocks:
            raise ImportError(f"the SQL block {name!r} is a variant of {of!r}, and there is none of that name")
        if careful:
            blocks[of] = variant


def _whole(block: str, others: Mapping[str, str]) -> str:
    """The block with the others it refers to."""

    def seen(see: re.Match[str]) -> str:
        name, values = see[1], dict(_GIVEN.findall(see[2]))
        if name not in others:
            raise ImportError(f"a SQL block says 'see {name}', and there is none of that name")
        places = set(_OPEN.findall(others[name]))
        if values.keys() != places:
            raise ImportError(f"a SQL block says 'see {name}' with {sorted(values)}, which takes {sorted(places)}")
        return _whole(_OPEN.sub(lambda place: values[place[1]], others[name]), others)

    return _SEE.sub(seen, block)


def _read(package: str, made: Mapping[str, str] | None) -> tuple[dict[str, str], dict[str, str]]:
    """The blocks and the parts, each by name."""
    blocks: dict[str, str] = {}
    parts = dict(made or {})
    for file in files(package).joinpath("sql").iterdir():
        _add(blocks, parts, file.name, file.read_text(encoding="utf-8"))
    return blocks, parts


def _add(blocks: dict[str, str], parts: dict[str, str], file: str, text: str) -> None:
    header, *found = _NAME.split(text)
    if any(line and not line.startswith("--") for line in header.splitlines()):
        raise ImportError(f"{file} has SQL before its first '-- name:' line")
    for kind, name, body in zip(found[::3], found[1::3], found[2::3], strict=True):
        if name in blocks or name in parts:
            raise ImportError(f"{file} defines the SQL block {name!r} a second time")
        (parts if kind == "part" else blocks)[name] = body.strip()
