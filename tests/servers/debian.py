"""A Debian package and the libraries it names, unpacked into this environment: needs apt, but neither root nor room in
the system. Unpacked once; `make clean` removes it with the environment.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

CACHE: Final = Path(sys.prefix) / "servers"
NEEDED_LIBRARY: Final = re.compile(r"^ *\|?Depends: (lib(?!c6$|llvm)\S+)$", re.MULTILINE)
"""all but the C library, which every program here shares, and a compiler PostgreSQL does without (110 MB)"""


class PackageMissing(Exception):
    """Names the package to install."""


def unpacked(package: str) -> Path:
    """The root of the unpacked tree."""
    root = CACHE / package
    CACHE.mkdir(exist_ok=True)
    with _one_at_a_time():
        if not root.exists():
            _unpack(package, root)
    return root


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Tests run side by side: one fetches, the others wait and find it there."""
    folder = os.open(CACHE, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _unpack(package: str, root: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{package}-", dir=CACHE) as workshop:
        tree = Path(workshop) / "tree"
        for archive in _downloaded(package, Path(workshop)):
            _run(package, "dpkg", "-x", str(archive), str(tree))
        tree.rename(root)


def _downloaded(package: str, workshop: Path) -> list[Path]:
    """With the machine's package lists, or where they are missing or too old, with fresh ones of our own."""
    try:
        return _download(package, workshop, [])
    except PackageMissing:
        lists, cache = workshop / "lists", workshop / "cache"
        (lists / "partial").mkdir(parents=True)
        (cache / "archives" / "partial").mkdir(parents=True)
        ours = [f"-oDir::State::Lists={lists}", f"-oDir::Cache={cache}", "-oAPT::Sandbox::User="]
        _run(package, "apt-get", *ours, "-qq", "update")
        return _download(package, workshop, ours)


def _download(package: str, workshop: Path, options: list[str]) -> list[Path]:
    named = _run(package, "apt-cache", *options, "depends", package)
    libraries = sorted(set(NEEDED_LIBRARY.findall(named)))
    _run(package, "apt-get", *options, "-qq", "download", package, *libraries, cwd=workshop)
    return sorted(workshop.glob("*.deb"))


def _run(package: str, *command: str, cwd: Path | None = None) -> str:
    advice = f"install the Debian package {package} (apt-get install {package})"
    if shutil.which(command[0]) is None:
        raise PackageMissing(f"{advice}: it is not here, and without {command[0]} it cannot be fetched")
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PackageMissing(f"{advice}: it is not here, and `{' '.join(command)}` said: {done.stderr.strip()}")
    return done.stdout
