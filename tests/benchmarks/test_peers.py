"""Peers, as far as none needs to be installed: what is known of them, their locks, and how they are spoken to."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.__main__ import choose_peers
from benchmarks.ordered import ROOT
from benchmarks.peers import process
from benchmarks.peers.known import PEERS, Peer
from benchmarks.peers.process import NODE_FOLDER
from benchmarks.peers.python.__main__ import MODULES
from benchmarks.peers.versions import LOCK, NODE_LOCK, version
from benchmarks.run import Miscounted, prepared
from benchmarks.workloads.drain_two import DRAIN_TWO
from benchmarks.workloads.latency import LATENCY
from benchmarks.workloads.submit_hundred import SUBMIT_HUNDRED
from benchmarks.workloads.workload import Workload
from packaging.requirements import Requirement

ASKED_FOR = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["peers"]
JOBS = 40


@pytest.mark.parametrize("peer", PEERS.values(), ids=list(PEERS))
def test_every_peer_has_a_program_and_a_version(peer: Peer) -> None:
    assert re.match(r"\d+\.\d+", version(peer))
    if peer.language == "python":
        assert (ROOT / "benchmarks" / "peers" / "python" / f"{MODULES[peer.name]}.py").exists()
    else:
        assert re.search(rf'^  "{peer.name}":', (NODE_FOLDER / "main.mjs").read_text(), re.MULTILINE)


def test_every_program_is_of_a_known_peer() -> None:
    assert set(MODULES) <= set(PEERS)


def test_the_lock_of_python_names_what_was_asked_for_by_hash() -> None:
    entries = re.findall(r"^([\w.-]+)==\S+.*((?:\n    .*)*)", LOCK.read_text(), re.MULTILINE)
    direct = {name for name, rest in entries if "ropewalk (pyproject.toml:peers)" in rest}
    assert direct == {Requirement(text).name for text in ASKED_FOR}
    assert [name for name, rest in entries if "--hash=sha256:" not in rest] == []


def test_the_lock_of_node_names_hashes_and_no_addresses() -> None:
    said = NODE_LOCK.read_text()
    assert '"resolved"' not in said
    assert said.count('"integrity"') == said.count('"node_modules/')


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "PYTHON", tmp_path / "python")
    with pytest.raises(SystemExit, match="saq: not installed; `make bench-peers`"):
        choose_peers(["saq"])
    with pytest.raises(SystemExit, match="nobody: unknown"):
        choose_peers(["nobody"])


@pytest.fixture
def floor_as_peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    peer = Peer(name="floor-as-peer", package="-", store="sqlite", unfinished="SELECT count(*) FROM job", settings="-")
    monkeypatch.setitem(PEERS, peer.name, peer)
    monkeypatch.setitem(process.PROGRAMS, "python", [sys.executable, "-m", "tests.benchmarks.programs.floor_as_peer"])
    yield peer.name


@pytest.mark.parametrize("workload", [SUBMIT_HUNDRED, DRAIN_TWO, LATENCY], ids=lambda workload: workload.name)
async def test_a_peer_runs_the_workloads_in_its_own_processes(
    workload: Workload, floor_as_peer: str, tmp_path: Path
) -> None:
    async with prepared(floor_as_peer, "sqlite", jobs=JOBS, workers=workload.workers, parent=tmp_path) as run:
        measured = await workload.procedure(run)
    assert measured.jobs == JOBS
    assert measured.headline > 0


async def test_a_peer_whose_jobs_do_not_add_up_is_an_error(floor_as_peer: str, tmp_path: Path) -> None:
    async with prepared(floor_as_peer, "sqlite", jobs=JOBS, workers=1, parent=tmp_path) as run:
        await run.subject.hand_in("bulk", run.jobs[:-1])
        with pytest.raises(Miscounted, match=f"the store has {run.jobs.stop - 1}"):
            await run.verify(completed=False)
        await run.subject.hand_in("one", run.jobs[:1])
        await run.crew.go()
        await run.until_completed(run.jobs.stop)
        await run.crew.stop()
        with pytest.raises(Miscounted, match="never started"):
            await run.verify(completed=True)
