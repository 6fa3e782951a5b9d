"""Runs the steps of a page in a directory, and says what went otherwise than the page says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import assert_never

from tests.docs.pages import Command, File, Script, Step

SECONDS_MAX = 60
_PROGRAMS = {
    "python": [sys.executable],
    "pytest": [sys.executable, "-m", "pytest"],
    "ropewalk": [sys.executable, "-m", "ropewalk"],
}


def run(step: Step, place: Path) -> None:
    """Raises AssertionError with everything the step said."""
    match step:
        case File():
            (place / step.name).write_text(step.code, encoding="utf-8")
        case Script():
            (place / step.name).write_text(step.code, encoding="utf-8")
            done = execute([sys.executable, "-W", "error", step.name], place)
            told = f"{step.name} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
            assert done.returncode == 0 and not done.stderr, told
            assert not step.prints or fits(done.stdout, step.prints), told
        case Command():
            program, *arguments = shlex.split(step.line)
            done = execute([*_PROGRAMS[program], *arguments], place)
            told = f"$ {step.line}\n{done.stdout}\n{done.stderr}"
            assert done.returncode == 0, told
            assert fits(done.stdout, step.prints), told
        case _:
            assert_never(step)


def execute(command: list[str], place: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """In an environment that says nothing about ropewalk, terminals or coverage of the outer run."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ROPEWALK", "PYTEST"))}
    return subprocess.run(
        command,
        cwd=place,
        env={**kept, "NO_COLOR": "1", "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def fits(printed: str, expected: list[str]) -> bool:
    """`...` stands for anything: within a line, or, alone on one, for lines. Space at the ends of lines is nothing."""
    pattern = r"\n".join("(?s:.*)" if line == "..." else _pattern(line) for line in expected)
    text = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
    return re.fullmatch(pattern, text) is not None


def _pattern(line: str) -> str:
    return re.escape(line.rstrip()).replace(r"\.\.\.", ".*")
