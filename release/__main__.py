"""Build the sdist and the wheel, try both in fresh environments, and print the notes of this version.

`make release` runs this. It uploads nothing: what it leaves in dist/ is for a person to upload. It refuses a tree
with uncommitted changes, because a release must be found again by its commit.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DIST: Final = ROOT / "dist"
RUNTIME: Final = ROOT / "requirements" / "runtime.txt"
PACKAGE: Final = ROOT / "src" / "ropewalk"
WHICH: Final = "import importlib.metadata, ropewalk; print(importlib.metadata.version('ropewalk'), ropewalk.__file__)"


class Refused(Exception):
    """Says what stands in the way of a release, and what to do about it."""


def main() -> int:
    try:
        version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
        require_clean_tree()
        notes = notes_of(version, (ROOT / "CHANGELOG.md").read_text())
        wheel, sdist = build()
        check_contents(wheel, sdist)
        for archive in (wheel, sdist):
            try_out(archive, version)
    except Refused as refusal:
        print(f"make release: {refusal}", file=sys.stderr)
        return 1
    print(f"\nropewalk {version}: {wheel.name} and {sdist.name} are in dist/ and work. The notes:\n\n{notes}")
    return 0


def require_clean_tree() -> None:
    changed = run("git", "status", "--porcelain", cwd=ROOT).strip()
    if changed:
        raise Refused(f"these files are not committed; commit them or put them aside first:\n{changed}")


def notes_of(version: str, changelog: str) -> str:
    """The section of the changelog about this version, with its heading."""
    section = re.search(rf"^## {re.escape(version)}\b.*?(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if section is None:
        raise Refused(f"CHANGELOG.md has no section ## {version}; write what changed for users")
    return section.group().strip()


def build() -> tuple[Path, Path]:
    """The wheel is built from the sdist, so what the sdist lacks is missed here and not by those who install it."""
    shutil.rmtree(DIST, ignore_errors=True)
    command = [sys.executable, "-m", "uv", "build", "--quiet", "--no-build-isolation", "--python", sys.executable]
    run(*command, "--out-dir", str(DIST), cwd=ROOT)
    [wheel], [sdist] = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def check_contents(wheel: Path, sdist: Path) -> None:
    """Every file of the package is in both, SQL and the marker of types included, and no test is in the wheel."""
    expected = {f"ropewalk/{path.relative_to(PACKAGE)}" for path in PACKAGE.rglob("*") if belongs(path)}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}
    with tarfile.open(sdist) as packed:
        in_sdist = {name.partition("/src/")[2] for name in packed.getnames() if "/src/ropewalk/" in name}
    for built, found in ((wheel, in_wheel), (sdist, in_sdist)):
        if missing := sorted(expected - found):
            raise Refused(f"{built.name} lacks {', '.join(missing)}; see [tool.hatch.build] in pyproject.toml")
    if foreign := sorted(in_wheel - expected):
        raise Refused(f"{wheel.name} has files that are not in src/ropewalk: {', '.join(foreign)}")


def belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def try_out(archive: Path, version: str) -> None:
    """Install into an environment that has the locked dependencies and nothing else, then run the demo there."""
    print(f"trying {archive.name} in a fresh environment")
    with tempfile.TemporaryDirectory(prefix="ropewalk-release-") as folder:
        environment = Path(folder) / "environment"
        python = str(environment / "bin" / "python")
        run(sys.executable, "-m", "venv", "--without-pip", str(environment))
        install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python]
        run(*install, "--require-hashes", "-r", str(RUNTIME))
        run(*install, "--no-deps", str(archive))
        said = run(python, "-c", WHICH, cwd=Path(folder))
        if said.split()[0] != version or not said.split()[1].startswith(str(environment)):
            raise Refused(f"{archive.name} brings version {said.strip()}, not {version}")
        run(str(environment / "bin" / "ropewalk"), "demo", cwd=Path(folder))


def run(*command: str, cwd: Path | None = None) -> str:
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise Refused(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}".rstrip())
    return ended.stdout


if __name__ == "__main__":
    sys.exit(main())
