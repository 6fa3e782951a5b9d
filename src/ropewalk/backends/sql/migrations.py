"""Schema migrations: numbered files, which are only applied forward. The header of each says whether older releases can
still use the store.

    0002_add_colour.sql
    -- compat: additive        (older releases ignore what it adds; `breaking`: they must not touch the store)

This module reads the files and decides which of them are missing. Each store runs their statements itself.
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
"""Whether older releases can use a store to which the migration was applied."""

_FILE: Final = re.compile(r"(\d{4})_(\w+)\.sql")
_HEADER: Final = re.compile(r"-- compat: (additive|breaking)\n")


class Migration(Struct, frozen=True, kw_only=True):
    """One file."""

    version: int
    name: str
    compat: Compat
    statements: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.version:04}_{self.name}"


def read_migrations(package: str) -> list[Migration]:
    """Returns the migrations in the package's `migrations` folder, in order. Raises ImportError if a number is missing,
    or if a file has a wrong name or no header."""
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
    """Returns the migrations that are not applied yet. Raises SchemaMismatch if a newer release has changed the store
    in a way that this one does not understand."""
    newest = known[-1].version
    breaking = [version for version, compat in applied.items() if version > newest and compat == "breaking"]
    if breaking:
        raise SchemaMismatch(
            f"{place} has schema {max(applied)}, this release of ropewalk knows up to {newest} and schema "
            f"{min(breaking)} is not compatible with it: upgrade ropewalk, or use another store"
        )
    return [migration for migration in known if migration.version not in applied]


def state_of(known: Sequence[Migration], applied: Mapping[int, Compat], place: str) -> SchemaState:
    """Returns which migrations are applied and which are missing."""
    return SchemaState(
        applied=max(applied, default=0),
        newest=known[-1].version,
        missing=[migration.title for migration in missing(known, applied, place)],
    )


def refuse_outdated(known: Sequence[Migration], applied: Mapping[int, Compat], place: str) -> None:
    """Raises SchemaMismatch if migrations are missing, for a store that must not be changed when it is opened."""
    lacking = missing(known, applied, place)
    if lacking:
        raise SchemaMismatch(
            f"{place} lacks {', '.join(migration.title for migration in lacking)}: run `ropewalk migrate`, or let the "
            "app do it (migrate=True)"
        )


def statements_of(script: str) -> Iterable[str]:
    """Returns the statements of a script. A script must not contain triggers, or texts with a semicolon at the end of a
    line."""
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
