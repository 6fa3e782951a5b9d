"""Where the project is, and which of its files belong to it. Knows nothing of git: a tarball is tested too."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ropewalk"


def committed_files(folder: Path = ROOT) -> Iterator[Path]:
    """Every file .gitignore does not name. Its patterns are plain names, so each is matched against one name."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().split()]
    for entry in sorted(folder.iterdir()):
        if entry.name == ".git" or any(fnmatch(entry.name, pattern) for pattern in ignored):
            continue
        if entry.is_dir():
            yield from committed_files(entry)
        else:
            yield entry
