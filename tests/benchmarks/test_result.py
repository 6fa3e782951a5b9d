"""What the rounds come to: ratios within a round, the best peer, and whether a target is met."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.harness import Settings, in_turn
from benchmarks.machine import Machine
from benchmarks.measurement import Measurement, rate
from benchmarks.peers.known import PEERS
from benchmarks.result import Result
from benchmarks.subjects.subject import StoreName
from benchmarks.workloads.drain_one import DRAIN_ONE
from benchmarks.workloads.latency import LATENCY
from benchmarks.workloads.round_trip import ROUND_TRIP
from benchmarks.workloads.submit_bulk import SUBMIT_BULK
from benchmarks.workloads.submit_hundred import SUBMIT_HUNDRED
from benchmarks.workloads.submit_one import SUBMIT_ONE
from benchmarks.workloads.workload import Workload

from benchmarks import page, report

MACHINE = Machine(2, "Linux", "3.11", "3.53", "18.6", "ext4", 0.2)
SETTINGS = Settings(peers=tuple(PEERS.values()))


def result(workload: Workload, store: StoreName = "postgres", **rates: list[float]) -> Result:
    runs = {kind.replace("_", "-"): [rate(int(each), 1.0) for each in of] for kind, of in rates.items()}
    return Result(store, workload, runs)


def test_a_ratio_is_taken_within_a_round() -> None:
    measured = result(DRAIN_ONE, ropewalk=[10, 40, 90], floor=[20, 400, 100])
    assert measured.of_floor == 0.5
    assert measured.on_target is True
    assert result(DRAIN_ONE, ropewalk=[34], floor=[100]).on_target is False


def test_the_best_peer_is_one_in_python_that_promises_as_much() -> None:
    measured = result(SUBMIT_BULK, ropewalk=[60], floor=[90], procrastinate=[10], pgqueuer=[50], pg_boss=[70])
    assert measured.best_peer == "pgqueuer"
    assert measured.of_best_peer == 1.2
    assert measured.on_target is True
    assert result(DRAIN_ONE, "sqlite", ropewalk=[60], floor=[90], litequeue=[70]).best_peer is None


def test_of_latencies_the_lowest_is_best() -> None:
    runs = {"ropewalk": 6.0, "floor": 2.0, "pgqueuer": 3.0, "procrastinate": 4.0}
    measured = Result("postgres", LATENCY, {kind: [Measurement(1, {"p50 ms": of})] for kind, of in runs.items()})
    assert (measured.best_peer, measured.of_best_peer, measured.on_target) == ("pgqueuer", 2.0, False)


def test_without_what_a_target_speaks_of_it_is_not_judged() -> None:
    assert result(SUBMIT_BULK, ropewalk=[60], floor=[90]).on_target is None
    assert result(SUBMIT_HUNDRED, ropewalk=[60], floor=[90]).on_target is None


@pytest.mark.parametrize(("hundred", "met"), [(24, False), (25, True)])
def test_one_workload_beside_another(hundred: float, met: bool) -> None:
    measured = result(SUBMIT_HUNDRED, ropewalk=[hundred], floor=[90])
    measured.stand_beside([result(SUBMIT_ONE, "sqlite", ropewalk=[99]), result(SUBMIT_ONE, ropewalk=[10]), measured])
    assert measured.on_target is met


def test_rounds_begin_with_another_each() -> None:
    assert [in_turn(("a", "b", "c"), number) for number in (0, 1, 3)] == [
        ("a", "b", "c"),
        ("b", "c", "a"),
        ("a", "b", "c"),
    ]


def test_peers_are_asked_for_what_they_can_do_and_no_more_than_they_can_take() -> None:
    saq, pgqueuer = PEERS["saq"], PEERS["pgqueuer-500"]
    assert saq not in SETTINGS.peers_of("postgres", SUBMIT_BULK)
    assert saq in SETTINGS.peers_of("postgres", DRAIN_ONE)
    assert SETTINGS.peers_of("postgres", ROUND_TRIP) == []
    assert SETTINGS.peers_of("memory", DRAIN_ONE) == []
    assert SETTINGS.size_of(DRAIN_ONE, saq) == saq.jobs_max
    assert SETTINGS.size_of(DRAIN_ONE, pgqueuer) == DRAIN_ONE.jobs


def test_columns_about_peers_only_where_there_are_any() -> None:
    alone, beside = result(DRAIN_ONE, ropewalk=[1], floor=[2]), result(DRAIN_ONE, ropewalk=[1], floor=[2], saq=[1])
    assert "best Python peer" not in report.overview([alone])[0]
    assert "saq: 1 jobs/s" in report.overview([alone, beside])[2]
    assert {len(row) for row in report.overview([alone, beside])} == {9}
    assert report.everybody([alone, beside])[3] == ["saq", "–", "1 jobs/s"]


def test_writing_the_page_keeps_the_stores_that_were_not_measured(tmp_path: Path) -> None:
    to = tmp_path / "RESULTS.md"
    page.write([result(DRAIN_ONE, "sqlite", ropewalk=[11], floor=[22])], MACHINE, SETTINGS, to=to)
    page.write([result(DRAIN_ONE, ropewalk=[33], floor=[44], pgqueuer=[55])], MACHINE, SETTINGS, to=to)
    page.write([result(DRAIN_ONE, ropewalk=[66], floor=[77], pgqueuer=[88])], MACHINE, SETTINGS, to=to)
    said = to.read_text()
    assert "| drain-1 | 11 jobs/s | 22 jobs/s |" in said
    assert "| drain-1 | 66 jobs/s | 77 jobs/s |" in said
    assert "33 jobs/s" not in said
    assert said.index("## sqlite") < said.index("## postgres")


def test_the_committed_page_is_one_that_writing_keeps(tmp_path: Path) -> None:
    to = tmp_path / "RESULTS.md"
    to.write_text(page.PAGE.read_text())
    page.write([result(DRAIN_ONE, "postgres", ropewalk=[11], floor=[22])], MACHINE, SETTINGS, to=to)
    for store in ("memory", "sqlite"):
        assert f"\n## {store}\n" in to.read_text()


def test_machines_are_told_the_same() -> None:
    measured = result(SUBMIT_BULK, ropewalk=[60, 60], floor=[90, 90], pgqueuer=[50, 50])
    [said] = json.loads(report.as_json([measured], MACHINE, SETTINGS))["results"]
    assert (said["best_peer"], said["of_best_peer"], said["on_target"]) == ("pgqueuer", 1.2, True)
    assert said["medians"]["pgqueuer"] == {"jobs/s": 50}
