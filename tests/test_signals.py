"""The tests do not depend on which signals the process that started them ignores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IGNORING = """
import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    signal.signal(number, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *sys.argv[1:]])
"""


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_program_started_by_a_test_dies_of_a_signal(number: signal.Signals) -> None:
    sleeping = subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"], stdout=-1)
    assert sleeping.stdout is not None
    sleeping.stdout.readline()
    sleeping.send_signal(number)
    sleeping.communicate(timeout=30)
    assert sleeping.returncode in (-number, 1)  # Python turns SIGINT into KeyboardInterrupt, and may end with 1


def test_it_dies_of_it_too_where_the_tests_were_started_to_ignore_signals() -> None:
    here = f"{Path(__file__).relative_to(ROOT)}::{test_a_program_started_by_a_test_dies_of_a_signal.__name__}"
    run = subprocess.run(
        [sys.executable, "-c", IGNORING, here],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 passed" in run.stdout
