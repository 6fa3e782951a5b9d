"""What every file of the project keeps to."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.project.tree import ROOT, SOURCE, committed_files

# Put together here, so that this file does not name what it looks for.
INDEX_HOSTS = [
    ".".join(host) for host in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("yarnpkg", "com"))
]
MACHINE_PATH = re.compile(r"(?<![\w.-])(?<!:/)/(?:work|root|home|tmp|Users)(?![\w-])")
LINES_MAX = 400


def test_no_file_names_a_package_index() -> None:
    naming = [named(path) for path in committed_files() if any(host in text_of(path) for host in INDEX_HOSTS)]
    assert naming == []


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    naming = [named(path) for path in committed_files() if MACHINE_PATH.search(text_of(path))]
    assert naming == []


def test_every_module_says_what_it_is() -> None:
    silent = [named(path) for path in SOURCE.rglob("*.py") if not ast.get_docstring(ast.parse(text_of(path)))]
    assert silent == []


def test_no_source_file_is_too_long_to_read() -> None:
    lengths = {named(path): text_of(path).count("\n") for path in committed_files(ROOT / "src")}
    assert {name: lines for name, lines in lengths.items() if lines > LINES_MAX} == {}


def text_of(path: Path) -> str:
    return path.read_bytes().decode(errors="ignore")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))
