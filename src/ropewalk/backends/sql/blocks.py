"""SQL lives in `.sql` files as named blocks; a manifest names them all, so a typo is an import error.

    -- name: claim_keys
    SELECT …

A block may contain one group of placeholders marked `/* each row */`: `for_rows` repeats it, because one statement with
many rows is faster than many statements (and releases the interpreter lock once instead of once for each row). Text
that several blocks have in common is a part (`-- part: columns` instead of `-- name:`); a block includes it by the
comment `/* see columns */`. Parts may also be made in Python, as lists of columns are. If the blocks differ in a value,
the part has a placeholder for it, such as `{now}`, and each block gives the value in a line of its own:

    UPDATE job SET
        /* see leased
        now = %(4)s
        */

If junk in a column would make a statement fail, there is a careful variant, which is slower and does not fail
(damage.py): a block or part `columns_carefully` replaces `columns` in all of them.
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


def load(package: str, manifest: type[M], *, generated: Mapping[str, str] | None = None, careful: bool = False) -> M:
    """Loads the blocks of every file in the package's `sql` folder into the fields of the manifest. Raises if the names
    of the blocks and the fields differ.

    `generated` are parts that are made in Python; with `careful=True`, careful variants replace their blocks and parts.
    """
    blocks, parts = _read(package, generated)
    _choose_variants(blocks, careful=careful)
    _choose_variants(parts, careful=careful)
    missing = sorted(field.name for field in structs.fields(manifest) if field.required and field.name not in blocks)
    unknown = sorted(blocks.keys() - set(manifest.__struct_fields__))
    if missing or unknown:
        raise ImportError(f"the SQL blocks in {package} do not fit {manifest.__name__}: {missing=} {unknown=}")
    return manifest(**{name: _whole(block, blocks | parts) for name, block in blocks.items()})


def part(package: str, name: str, *, generated: Mapping[str, str] | None = None) -> str:
    """Returns one part by itself."""
    blocks, parts = _read(package, generated)
    return _whole(parts[name], blocks | parts)


@lru_cache(maxsize=1024)
def for_rows(block: str, rows: int) -> str:
    """Returns the block with its marked group of placeholders repeated `rows` times."""
    head, group, tail = _ROW.split(block)
    return head + ", ".join([group] * rows) + tail


@lru_cache(maxsize=512)
def statements_in(block: str) -> tuple[str, ...]:
    """Returns the statements of a block, which lines with `-- then` separate. All of them get the same values."""
    return tuple(part.strip() for part in _THEN.split(block))


@lru_cache(maxsize=1024)
def chunk_sizes(rows: int, largest: int) -> tuple[int, ...]:
    """Splits `rows` into powers of two up to `largest`: there are few distinct statements, and each is prepared
    once."""
    whole, rest = divmod(rows, largest)
    return (*[largest] * whole, *(1 << bit for bit in reversed(range(largest.bit_length())) if rest & 1 << bit))


def _choose_variants(blocks: dict[str, str], *, careful: bool) -> None:
    """Removes the careful variants, or puts each of them in the place of the block that it is a variant of."""
    for name in [name for name in blocks if name.endswith(_CAREFULLY)]:
        variant, of = blocks.pop(name), name.removesuffix(_CAREFULLY)
        if of not in blocks:
            raise ImportError(f"the SQL block {name!r} is a variant of {of!r}, and there is none of that name")
        if careful:
            blocks[of] = variant


def _whole(block: str, others: Mapping[str, str]) -> str:
    """Returns the block with the text of the parts that it includes."""

    def seen(see: re.Match[str]) -> str:
        name, values = see[1], dict(_GIVEN.findall(see[2]))
        if name not in others:
            raise ImportError(f"a SQL block says 'see {name}', and there is none of that name")
        places = set(_OPEN.findall(others[name]))
        if values.keys() != places:
            raise ImportError(f"a SQL block says 'see {name}' with {sorted(values)}, which takes {sorted(places)}")
        return _whole(_OPEN.sub(lambda place: values[place[1]], others[name]), others)

    return _SEE.sub(seen, block)


def _read(package: str, generated: Mapping[str, str] | None) -> tuple[dict[str, str], dict[str, str]]:
    """Reads the blocks and the parts of all files, each by its name."""
    blocks: dict[str, str] = {}
    parts = dict(generated or {})
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
