"""X3: every example runs on a fresh SQLite file and prints what it should."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.docs.running import execute

EXAMPLES = ROOT / "examples"
LINES_MAX = 80
PACKAGE_LINES_MAX = 300
"""Of a file of a whole package: a store has many verbs."""

PRINTED = {
    "quickstart.py": """\
1 + 2 = 3
hello Ada, this is attempt 1
  1. queued
  2. started
  3. complete
""",
    "retries_and_compensation.py": """\
order-1: the bank is away, attempt 1 of 5
order-1: the bank is away, attempt 2 of 5
order-1: charged 4200 cents
order-1: shipped to France
order-1: charge completed, ship completed
order-2: the bank is away, attempt 1 of 5
order-2: the bank is away, attempt 2 of 5
order-2: charged 4200 cents
order-2: refunding 4200 cents, because nobody ships to Atlantis
order-2: charge completed, ship failed, refund completed
""",
    "progress_and_checkpoints.py": """\
attempt 1 starts at row 0
stopped: it is scheduled again, and has used 0 attempts
attempt 1 starts at row 100
imported 300 rows
""",
    "cpu_work.py": """\
primes: 4
primes: 168
primes: 9592
dead_letter: the attempt ran longer than its timeout of 0.5 s
""",
    "order_processing.py": """\
order 1: parcel with 1 × lamp
  reserve: completed
  pay: completed
  ship: completed
  3 × chair given back
order 2: failed, chairs in stock: 5
""",
    "order_placement.py": """\
receipt for order-1: 45.00
order-1 was refused: UNIQUE constraint failed: orders.id
order-2 was refused: CHECK constraint failed: cents > 0
orders: order-1; jobs: 3
""",
    "map_reduce.py": """\
...
[####################] 41/41 jobs
10000 words in 40 files
""",
    "human_approval.py": """\
pending: it waits for the signal 'approval': send it with app.signal(...
'All about ropes' published, approved by Grace
'All about knots' was not approved in time
""",
    "nightly_report.py": """\
mailed: 200 from 2 of 3 regions
cleaned up
load      completed
check     completed
load      completed
check     completed
load      completed
check     failed
report    completed
mail      completed
clean_up  completed
8 dependencies
""",
    "schedules.py": """\
ticking fired
ticking fired
ticking fired
nightly: 30 3 * * * (Europe/Oslo), generation 2
weather report written
newest   active  every 1 h
nightly  active  30 3 * * * (Europe/Oslo)
ticking  paused  every 0.2 s
""",
    "web_handler_sync.py": """\
40 requests, 10 jobs
completed: small-cat-0.png
""",
}


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_the_example_prints_what_it_should(name: str, tmp_path: Path) -> None:
    done = execute([sys.executable, "-W", "error", str(EXAMPLES / name), "jobs.db"], tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    wanted = re.escape(PRINTED[name]).replace(r"\.\.\.", ".*")  # `...` stands for anything
    assert re.fullmatch(wanted, done.stdout, re.DOTALL), done.stdout
    assert (tmp_path / "jobs.db").exists()


def test_the_testing_example_passes(tmp_path: Path) -> None:
    """As a user's own project: with none of our settings, and with the plugin that comes with ropewalk."""
    settings = ["-c", "/dev/null", "-o", "asyncio_mode=auto", "-p", "no:cacheprovider", "-p", "no:randomly"]
    done = execute([sys.executable, "-m", "pytest", "-q", *settings, str(EXAMPLES / "testing_example")], tmp_path)
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PRINTED)
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir() and path.name != "__pycache__"} == {
        "journal_backend",
        "remote_worker",  # run by tests/http/remote_workers/test_example.py
        "testing_example",
    }


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.py")), ids=lambda path: path.name)
def test_an_example_is_short_and_says_what_it_shows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") < (PACKAGE_LINES_MAX if "journal_backend" in path.parts else LINES_MAX)
    assert ast.get_docstring(ast.parse(text))
