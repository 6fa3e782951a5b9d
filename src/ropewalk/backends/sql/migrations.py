"""Schema migrations: numbered files, forward only, each with a header that says whether older releases can go on.

    0002_add_colour.sql
    -- compat: additive        (older releases ignore what it adds; `breaking`: they must not touch the store)

This module reads them and decides what to do; running the statements is the store's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Final, Literal, TypeAlias, cast

from msgspec import Struct

from ropewalk.errors import SchemaMismatch
from ropewalk.ports.store.migrations import SchemaState

Compat: TypeAlias = Literal["additive", "breaking"]

_FILE: Final = re.compile(r"(\d{4})_(\w+)\.sql")
_HEADER: Final = re.compile(r"-- compat: (additive|breaking)\n")


class Migration(Struct, frozen=True, kw_only=True):
    version: int
    name: str
    compat: Compat
    statements: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.version:04}_{self.name}"


def read_migrations(package: str) -> list[Migration]:
    """Everything in the package's `migrations` folder, in order; refuses gaps, other files and missing headers."""
    folder = files(package).joinpath("migrations")
    found = sorted(
        (_read(file.name, file.read_text(encoding="utf-8")) for file in folder.iterdir()),
        key=lambda migration: migration.version,
    )
    numbers = [migration.version for migration in found]
    if numbers != list(range(1, len(found) + 1)):
        raise ImportError(f"the migrations in {package} are not numbered 1, 2, 3, …: {numbers}")
    return found


def missing(known: Sequence[Migration], applied: Mapping[int, Compat], place: str) -> list[Migration]:
    """What is still to be applied; refuses a store that a newer release changed in a way this one cannot live with."""
    newest = known[-1].version
    breaking = [version for version, compat in applied.items() if version > newest and compat == "breaking"]
    if breaking:
        raise SchemaMismatch(
            f"{place} has schema {max(applied)}, this release of ropewalk knows up to {newest} and schema "
            f"{min(breaking)} is not compatible with it: upgrade ropewalk, or use another store"
        )
    return [migration for migration in known if migration.version not in applied]


def state_of(known: Sequence[Migration], applied: Mapping[int, Compat], place: str) -> SchemaState:
    return SchemaState(
        applied=max(applied, default=0),
        newest=known[-1].version,
        missing=[migration.title for migration in missing(known, applied, place)],
    )


def refuse_outdated(known: Sequence[Migration], applied: Mapping[int, Compat], place: str) -> None:
    """For a store that is not to be changed by opening it."""
    lacking = missing(known, applied, place)
    if lacking:
        raise SchemaMismatch(
            f"{place} lacks {', '.join(migration.title for migration in lacking)}: run `ropewalk migrate`, or let the "
            "app do it (migrate=True)"
        )


def statements_of(script: str) -> Iterable[str]:
    """The statements of a script. Ours hold no trigger and no text with a semicolon at the end of a line."""
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("--"))
    return (statement.strip() for statement in re.split(r";\s*$", code, flags=re.MULTILINE) if statement.strip())


def _read(file: str, text: str) -> Migration:
    named, header = _FILE.fullmatch(file), _HEADER.match(text)
    if named is None or header is None:
        raise ImportError(f"{file} is no migration: name it NNNN_name.sql and begin it with '-- compat: additive'")
    return Migration(
        version=int(named[1]),
        name=named[2],
        compat=cast("Compat", header[1]),
        statements=tuple(statements_of(text)),
    )
