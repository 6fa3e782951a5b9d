"""Each check of a lease is taken out of the source once, and the tests of the fence must fail (safe-5).

For every statement of every dialect and every function that looks at fence, owner or state of what a worker writes. The
table at the end of the run says which test sees it first. `make verify ARGS="-k hold.sql"` tries those of one file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.planting.faults import ROOT, SOURCE, Fault, all_faults
from tests.tables import NoteRow

pytestmark = [pytest.mark.planted, pytest.mark.timeout(600)]

STATEMENTS: Final = "tests/backends/sql/test_fenced_statements.py"
FAMILIES: Final = "tests/planting/families.py"
FILES: Final = {
    "memory": [f"{FAMILIES}::TestMemory"],
    "sqlite": [STATEMENTS, f"{FAMILIES}::TestSqlite"],
    "postgres": [
        *(STATEMENTS, "tests/backends/test_postgres_fences.py", f"{FAMILIES}::TestPostgres"),
        "tests/backends/postgres/test_handler_transactions.py",
    ],
}
FAULTS: Final = all_faults()
FEWEST: Final = {"memory": 8, "sqlite": 40, "postgres": 25}
"""Faults of each dialect. Fewer are found only if the form of the source has changed: teach faults.py the new one."""
FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+?::\S+)", re.MULTILINE)
TESTS_FAILED: Final = 1


def test_the_tests_pass_without_a_fault(tmp_path: Path) -> None:
    """Or what the others show would say nothing."""
    for dialect in FILES:
        done = _run(dialect, _copied(tmp_path / dialect))
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_checks_are_found() -> None:
    assert {name: sum(name in fault.dialects for fault in FAULTS) >= fewest for name, fewest in FEWEST.items()} == (
        dict.fromkeys(FEWEST, True)
    )


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_check_that_is_missing_is_seen(fault: Fault, tmp_path: Path, note_row: NoteRow) -> None:
    source = _copied(tmp_path)
    fault.plant(source)
    seen = told = ""
    for dialect in fault.dialects:
        done = _run(dialect, source)
        told += done.stdout + done.stderr
        if done.returncode == TESTS_FAILED and (failed := FAILED.search(done.stdout)) is not None:
            seen = failed[1]
            break
    assert seen, f"no test fails without this check:\n{told}"
    note_row("Planted faults, and the test that sees each", fault=fault.name, seen_by=seen)


def _copied(place: Path) -> Path:
    """The source, with what was compiled of it."""
    return Path(shutil.copytree(SOURCE, place / "src"))


def _run(dialect: str, source: Path) -> subprocess.CompletedProcess[str]:
    """Until the first test fails."""
    chosen = f"not test_fenced_statements or {dialect}"
    command = ["-m", "pytest", "-x", "--tb=no", "-rfE", "-p", "no:randomly", "-p", "no:cacheprovider"]
    ours = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "ROPEWALK_", "PYTHONDONT"))
    }
    return subprocess.run(
        [sys.executable, *command, "-m", "not system", "-k", chosen, *FILES[dialect]],
        cwd=ROOT,
        env={**ours, "PYTHONPATH": str(source), "COLUMNS": "400"},
        capture_output=True,
        text=True,
        check=False,
    )
