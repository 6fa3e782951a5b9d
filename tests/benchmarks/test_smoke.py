"""The benchmarks work: every workload runs on every store it is for, and a miscount is an error. No timing here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.__main__ import STORES, choose
from benchmarks.overhead.levels import LEVELS, OFF
from benchmarks.run import WARM_UP_JOBS, Miscounted, Run, prepared
from benchmarks.server import Server, started
from benchmarks.subjects.subject import Kind, StoreName
from benchmarks.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parents[2]
JOBS = 40


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Durable: ropewalk refuses the one other tests share."""
    with started() as running:
        yield running


@pytest.mark.timeout(400)  # dozens of processes, one after the other: on a busy machine they took a minute
@pytest.mark.parametrize("store", STORES)
def test_a_quick_run_measures_everything_and_every_job_is_counted(store: StoreName, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", store, "--jobs", str(JOBS)]
    command += ["--directory", str(tmp_path), "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    said = json.loads(out.read_text())
    measured = {(result["store"], result["workload"]): result for result in said["results"]}
    expected = {(store, workload.name): workload for workload in WORKLOADS if store in workload.stores}
    assert set(measured) == set(expected)
    for key, workload in expected.items():
        assert measured[key]["jobs"] == {kind: [JOBS] for kind in workload.kinds}
        assert all(value > 0 for figures in measured[key]["medians"].values() for value in figures.values())
        assert workload.name in done.stdout
    assert said["machine"]["sync_ms"] > 0
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_every_store_is_measured_by_default() -> None:
    everything = {(store, workload.name) for workload in WORKLOADS for store in workload.stores}
    assert {(store, workload.name) for store, workload in choose([])} == everything


def test_only_takes_stores_workloads_or_both() -> None:
    assert [(store, workload.name) for store, workload in choose(["sqlite", "drain-1"])] == [("sqlite", "drain-1")]
    assert {store for store, _ in choose(["memory"])} == {"memory"}
    assert {workload.name for _, workload in choose(["latency"])} == {"latency"}
    assert "drain-2" not in {workload.name for _, workload in choose(["memory"])}
    assert "drain-2" in {workload.name for _, workload in choose(["postgres"])}
    with pytest.raises(SystemExit, match="drain-9"):
        choose(["drain-9"])


@pytest.mark.parametrize("kind", ["ropewalk", "floor"])
@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
async def test_jobs_that_do_not_add_up_are_an_error(
    kind: Kind, store: StoreName, tmp_path: Path, server: Server
) -> None:
    async with prepared(kind, store, jobs=JOBS, workers=0, parent=tmp_path, server=server) as run:
        await run.subject.hand_in("bulk", run.jobs[: JOBS - 1])
        with pytest.raises(Miscounted, match=f"submitted {WARM_UP_JOBS + JOBS} jobs, the store has"):
            await run.verify(completed=False)
        await run.subject.hand_in("one", run.jobs[:1])  # the right number of them, but one never comes
        await serve_all(run)
        with pytest.raises(Miscounted, match="never started"):
            await run.verify(completed=True)


async def serve_all(run: Run) -> None:
    await run.crew.go()
    await run.until_completed(run.jobs.stop)
    await run.crew.stop()


@pytest.mark.timeout(400)  # on a busy machine it took 84 s
def test_what_being_watched_costs_can_be_measured(tmp_path: Path) -> None:
    """Every level works off every job, on every store."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.overhead",
        "--quick",
        "--jobs",
        str(JOBS),
        "--directory",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split()[:2] for line in done.stdout.splitlines()[2:]]
    assert rows == [[store, level.name] for store in ("memory", "sqlite", "postgres") for level in (OFF, *LEVELS)]
    assert list(tmp_path.iterdir()) == []
