"""The way in: what is missing, what is misused, what version this is."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

from tests.cli.conftest import Run, environment

WITHOUT = "import sys; sys.modules[{name!r}] = None; from ropewalk.cli.main import main; main()"


@pytest.mark.parametrize("name", ["click", "rich"])
def test_without_the_extra_it_says_what_to_install(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(name=name)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f'error: the command line needs {name}: pip install "ropewalk[cli]"\n'


def test_version(ropewalk: Run) -> None:
    assert ropewalk("--version").out == f"ropewalk {version('ropewalk')}\n"


def test_with_nothing_asked_it_shows_the_help(ropewalk: Run) -> None:
    answer = ropewalk()
    assert answer.code == 2
    assert "Commands:" in answer.err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["jbos"], "error: No such command 'jbos'"),
        (["jobs", "show"], "error: Missing argument 'ID' (see ropewalk jobs show --help)"),
        (["jobs", "list", "--limit", "0"], "error: Invalid value for '--limit': 0 is not in the range 1<=x<=1000"),
        (["jobs", "list", "--state", "done"], "error: Invalid value for '--state': 'done' is not one of 'pending'"),
        (["jobs", "list", "--tag", "urgent"], "error: --tag 'urgent' is not NAME=VALUE, like customer=42"),
        (["worker"], "error: Missing argument 'MODULE:NAME'"),
    ],
    ids=" ".join,
)
def test_misuse_is_one_line_and_exit_code_2(args: list[str], said: str, ropewalk: Run) -> None:
    answer = ropewalk(*args)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(said)
    assert answer.err.count("\n") == 1
