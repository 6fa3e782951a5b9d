"""The first contact: what is committed, cloned by somebody else into an awkward place, runs its demo."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.tree import ROOT

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

NOBODY = 65534
OURS = ("VIRTUAL_ENV", "XDG_", "PYTHON", "MAKE", "MFLAGS", "UV_CACHE_DIR", "PYTEST", "ROPEWALK")
"""what this test run has set for itself; the rest describes the machine (proxies, certificates)"""


class Stranger:
    """Another user where this one may become it, with a home that cannot be written."""

    def __init__(self, place: Path) -> None:
        self.home, self.temporary = place / "home", place / "temporary"
        self.home.mkdir(mode=0o555)
        self.temporary.mkdir()
        self.uid = NOBODY if os.geteuid() == 0 else None
        self.owns(self.temporary)

    def owns(self, folder: Path) -> None:
        if self.uid is not None:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def run(self, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        env |= {"HOME": str(self.home), "TMPDIR": str(self.temporary)}
        groups: list[int] | None = None if self.uid is None else []
        return subprocess.run(
            command,
            cwd=cwd,
            env=env,
            user=self.uid,
            group=self.uid,
            extra_groups=groups,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )


@pytest.fixture
def place() -> Iterator[Path]:
    """Within reach of every user (the usual tmp_path is not)."""
    folder = Path(tempfile.mkdtemp(prefix="fresh-clone-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_stranger_runs_the_demo_and_leaves_no_trace_outside_the_clone(place: Path) -> None:
    stranger = Stranger(place)
    clone = place / "a fresh clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    stranger.owns(clone)

    demo = stranger.run("make", "demo", cwd=clone)
    assert demo.returncode == 0, demo.stdout

    assert sorted(place.iterdir()) == sorted([clone, stranger.home, stranger.temporary])
    assert list(stranger.home.iterdir()) == []
    assert list(stranger.temporary.iterdir()) == []
    assert stranger.run("git", "status", "--porcelain", cwd=clone).stdout == "", "something new is not in .gitignore"

    again = stranger.run("make", "demo", cwd=clone)
    assert again.returncode == 0, again.stdout
    assert "set-up:" not in again.stdout
