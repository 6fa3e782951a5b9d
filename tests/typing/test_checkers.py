"""D1, D3: right calls check, wrong calls do not, in both type checkers (the shapes of D3)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
RIGHT = {HERE / "right_calls.py", HERE / "workflows.py"}
INFERRED = HERE / "inferred_workflows.py"
"""handlers without a return annotation: pyright infers, mypy in strict mode wants the annotation"""
WRONG = HERE / "wrong_calls.py"


@pytest.mark.timeout(400)  # on a busy machine it took 70 s
def test_basedpyright(tmp_path: Path) -> None:
    files = [str(each) for each in (*RIGHT, INFERRED, WRONG)]
    config = {"include": files, "typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({**config, "extraPaths": [str(ROOT / "src"), str(ROOT)]}))
    command = ["-m", "basedpyright", "-p", str(tmp_path), "--pythonpath", sys.executable, "--outputjson"]
    found = json.loads(_run(command))["generalDiagnostics"]
    errors = {(Path(each["file"]), each["range"]["start"]["line"] + 1): each["message"] for each in found}
    _compare(errors, "# E")


@pytest.mark.timeout(400)  # on a busy machine it took 70 s
def test_mypy(tmp_path: Path) -> None:
    command = ["-m", "mypy", "--strict", "--python-version", "3.11", "--no-error-summary", "--hide-error-context"]
    command += ["--enable-error-code", "unused-awaitable"]  # as the guide recommends
    places = ["--cache-dir", str(tmp_path), "--config-file", "", *map(str, (*RIGHT, WRONG))]
    line = re.compile(r"(.*?):(\d+): error: (.*)")
    matches = filter(None, map(line.match, _run([*command, *places]).splitlines()))
    _compare(
        {(ROOT / file, int(number)): message for file, number, message in (each.groups() for each in matches)},
        "# E",
        "# E by mypy",
    )


def _run(command: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def _compare(errors: dict[tuple[Path, int], str], *marks: str) -> None:
    assert {at: told for at, told in errors.items() if at[0] != WRONG} == {}
    marked = {number for number, text in enumerate(WRONG.read_text().splitlines(), 1) if text.endswith(marks)}
    assert len(marked) > 70
    found = {line: told for (file, line), told in errors.items() if file == WRONG}
    assert {line: told for line, told in found.items() if line not in marked} == {}, "errors where none is due"
    assert marked - found.keys() == set(), "lines that wrongly check"
