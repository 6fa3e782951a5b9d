"""D3, X3: what the docs and examples show checks in the readers' own editors: mypy and basedpyright, both strict."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Command, pages

EXAMPLES = ROOT / "examples"
SECONDS_MAX = 110


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every script and file of the pages, side by side: their names are unique."""
    place = tmp_path_factory.mktemp("shown")
    steps = [step for page in pages() for step in page.steps]
    for step in steps:
        if not isinstance(step, Command):
            (place / step.name).write_text(step.code, encoding="utf-8")
    return place


@pytest.mark.timeout(400)  # a checker took 70 s on a busy machine
def test_mypy(shown: Path, tmp_path: Path) -> None:
    options = ["--strict", "--python-version", "3.11", "--config-file", "", "--cache-dir", str(tmp_path)]
    done = _run(["mypy", *options, str(shown), str(EXAMPLES)], shown)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(400)  # a checker took 70 s on a busy machine
def test_basedpyright(shown: Path, tmp_path: Path) -> None:
    config = {"include": [str(shown), str(EXAMPLES)], "typeCheckingMode": "strict", "pythonVersion": "3.11"}
    paths = [ROOT / "src", shown, EXAMPLES / "testing_example", EXAMPLES / "journal_backend"]
    # A backend's tests reach inside it: one page shows how.
    settings = {**config, "extraPaths": [str(path) for path in paths], "reportPrivateUsage": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = _run(["basedpyright", "-p", str(tmp_path), "--pythonpath", sys.executable], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def _run(command: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=place, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
