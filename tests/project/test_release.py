"""`make release`: what it refuses, and what it leaves in dist/."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest
from release.__main__ import Refused, check_contents, notes_of

from tests.project.tree import ROOT

CHANGELOG = """# Changelog

## 0.2.0 (unreleased)

- Something new.

## 0.1.0

- The foundation.
"""


def test_the_notes_are_the_section_of_the_version() -> None:
    assert notes_of("0.2.0", CHANGELOG) == "## 0.2.0 (unreleased)\n\n- Something new."
    assert notes_of("0.1.0", CHANGELOG) == "## 0.1.0\n\n- The foundation."


def test_a_version_without_notes_is_refused() -> None:
    with pytest.raises(Refused, match=r"no section ## 0\.3\.0"):
        notes_of("0.3.0", CHANGELOG)


def test_a_wheel_that_lacks_a_file_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "ropewalk.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("ropewalk/__init__.py", "")
    sdist = tmp_path / "ropewalk.tar.gz"
    subprocess.run(["tar", "-czf", sdist, "-C", ROOT, "--transform", "s,^,ropewalk-0/,", "src/ropewalk"], check=True)
    with pytest.raises(Refused, match=r"ropewalk\.whl lacks .*0001_first\.sql"):
        check_contents(wheel, sdist)


@pytest.mark.system
@pytest.mark.timeout(600)
def test_a_clean_clone_is_released(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    made = subprocess.run(["make", "release"], cwd=clone, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    assert sorted(path.suffix for path in (clone / "dist").iterdir() if path.name != ".gitignore") == [".gz", ".whl"]
    assert "## 0.1.0" in made.stdout

    (clone / "stray.txt").write_text("not committed")
    refused = subprocess.run(["make", "release"], cwd=clone, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "stray.txt" in refused.stderr
