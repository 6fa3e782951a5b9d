"""Growth: what is measured is what is said, on tiny numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from benchmarks.growth import table
from benchmarks.growth.cases import CASES, Drained
from benchmarks.growth.cost import cpu_seconds
from benchmarks.growth.held import held_transaction
from benchmarks.ordered import ROOT

BURN = "import time\nwhile time.process_time() < 0.4: pass\n"
BURNT_SECONDS = 0.3
"""at least: the clock of /proc has steps"""


def test_a_quick_run_measures_every_case_on_every_store(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.growth", "--quick", "--finished", "60", "--jobs", "40"]
    command += ["--directory", str(tmp_path), "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "60 of 60 finished" in done.stderr

    said = json.loads(out.read_text())
    assert (said["finished"], said["jobs"], said["rounds"]) == (60, 40, 1)
    assert set(said["results"]) == {"postgres", "sqlite"}
    for cases in said["results"].values():
        assert tuple(cases) == CASES
        assert all(run["wall_us"] > 0 for case in cases.values() for run in case["runs"])
    assert all(run["wal_bytes"] > 0 for case in said["results"]["postgres"].values() for run in case["runs"])
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_cpu_of_a_child_that_has_ended_is_counted() -> None:
    before = cpu_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert cpu_seconds(os.getpid()) - before >= BURNT_SECONDS


def test_cpu_of_a_child_that_lives_is_counted() -> None:
    before = cpu_seconds(os.getpid())
    program = BURN + "print('burnt', flush=True)\ninput()\n"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"burnt\n"
        assert cpu_seconds(os.getpid()) - before >= BURNT_SECONDS
        child.communicate(b"\n")


def test_a_held_transaction_holds_a_snapshot_and_an_id(postgres_database: str) -> None:
    asked = "SELECT state, backend_xmin IS NOT NULL, backend_xid IS NOT NULL FROM pg_stat_activity"
    asked += " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(postgres_database, autocommit=True) as watching, held_transaction(postgres_database):
        assert watching.execute(asked).fetchall() == [("idle in transaction", True, True)]


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (Drained(129, 100, 1000), "ok"),
        (Drained(140, 100, 1000), "time above 1.3"),
        (Drained(100, 140, 1400), "CPU, WAL above 1.3"),
    ],
)
def test_a_case_is_judged_beside_the_empty_store(ours: Drained, verdict: str) -> None:
    empty = Drained(100, 100, 1000)
    rows = table.rows({"postgres": {"empty": [empty] * 3, "held": [ours] * 3}})
    assert [row[-1] for row in rows] == ["", verdict]


def test_where_there_is_no_server_only_time_is_judged() -> None:
    empty, held = Drained(100, None, None), Drained(110, None, None)
    assert table.ratios("held", {"empty": [empty], "held": [held]}) == {"time": 1.1, "CPU": None, "WAL": None}
