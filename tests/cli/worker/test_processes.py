"""`ropewalk worker --processes`: started, replaced, drained and left behind as real processes are."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ropewalk import App, State
from tests.cli import shop
from tests.cli.conftest import Run, Start, lingering, members, until


def all_up(app: App, count: int) -> None:
    until(lambda: len(app.sync.workers()) == count, f"{count} workers are there")


def running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def gone(pids: list[int]) -> bool:
    return not any(map(running, pids))


def several(app: App, place: Path, count: int) -> list[str]:
    """Lingering jobs, each with a place of its own."""
    ids = []
    for number in range(count):
        (here := place / str(number)).mkdir()
        ids.append(lingering(app, "linger", here))
    return ids


def test_they_start_and_say_who_they_are(start: Start, app: App, url: str) -> None:
    process = start("--processes", "3", "--concurrency", "2", "--type", "add")
    all_up(app, 3)
    cards = {card.id: card.pid for card in app.sync.workers()}
    assert set(cards.values()) == set(members(process))
    done = app.sync.enqueue(shop.add(1, b=2))
    until(lambda: app.sync.get(done.id).terminal, "it ends")
    process.terminate()
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    said, _, rest = out.removeprefix("workers ").partition(" on ")
    assert set(said.split(", ")) == set(cards)
    assert rest == f"{url} (survives power loss): add; 2 at a time each\n"
    assert any(f"INFO worker-{number}: succeeded type=add job={done.id} attempt=1\n" in err for number in (1, 2, 3))
    assert [f"INFO worker-{number}: drained" in err for number in (1, 2, 3)] == [True] * 3
    assert "INFO fleet: draining: every worker was asked to stop" in err


def test_one_json_document_and_a_quiet_log(start: Start, app: App, url: str) -> None:
    process = start("--processes", "2", "--json", "--log-level", "warning")
    all_up(app, 2)
    workers = {card.id for card in app.sync.workers()}
    process.terminate()
    out, err = process.communicate(timeout=20)
    banner = json.loads(out)
    assert set(banner) == {"workers", "store", "durability", "types", "concurrency", "grace_seconds"}
    assert set(banner["workers"]) == workers
    assert (banner["store"], banner["concurrency"], "add" in banner["types"]) == (url, 10, True)
    assert err == ""


def test_one_that_is_killed_is_replaced_and_its_job_recovered(start: Start, app: App, place: Path) -> None:
    process = start("--processes", "2", "--lease", "1")
    all_up(app, 2)
    job_id = lingering(app, "linger", place)
    victim = int((place / "lingering").read_text())
    (place / "lingering").unlink()
    before = members(process)
    os.kill(victim, signal.SIGKILL)
    until(lambda: len(members(process)) == 2 and victim not in members(process), "there are two again")
    assert len(set(before) & set(members(process))) == 1
    until((place / "lingering").exists, "the job runs again")
    (place / "go").touch()
    until(lambda: app.sync.get(job_id).terminal, "it ends")
    assert (app.sync.get(job_id).result, app.sync.get(job_id).attempt) == ("gone", 2)
    process.terminate()
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert f"(pid {victim}) was killed by SIGKILL (out of memory?): another starts in 1 s" in err


def test_one_drain_lets_handlers_finish(start: Start, app: App, place: Path) -> None:
    process = start("--processes", "2")
    all_up(app, 2)
    ids = several(app, place, 3)
    # As a service manager does it: every process of the service is told, the supervisor among them.
    for pid in [*members(process), process.pid]:
        os.kill(pid, signal.SIGTERM)
    stderr = process.stderr
    assert stderr is not None
    until(lambda: "fleet: draining" in stderr.readline(), "the drain begins")
    for number in range(3):
        (place / str(number) / "go").touch()
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert [app.sync.get(job_id).result for job_id in ids] == ["gone"] * 3


def test_after_the_grace_period_no_attempt_is_lost(start: Start, app: App, place: Path) -> None:
    process = start("--processes", "3", "--grace", "0.5", "--concurrency", "1")
    all_up(app, 3)
    ids = several(app, place, 3)
    pids = members(process)
    began = time.monotonic()
    process.terminate()
    process.communicate(timeout=20)
    assert time.monotonic() - began < 5.5
    assert process.returncode == 0
    assert [(app.sync.get(each).state, app.sync.get(each).attempt) for each in ids] == [(State.SCHEDULED, 0)] * 3
    assert gone(pids)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_does_not_wait(stop: signal.Signals, start: Start, app: App, place: Path) -> None:
    process = start("--processes", "2", "--grace", "60")
    all_up(app, 2)
    job_id = lingering(app, "linger", place)
    stderr = process.stderr
    assert stderr is not None
    process.send_signal(stop)
    until(lambda: ": draining: no more jobs" in stderr.readline(), "a worker drains")
    process.send_signal(stop)
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert (app.sync.get(job_id).state, app.sync.get(job_id).attempt) == (State.SCHEDULED, 0)


def test_impatience_does_not_spoil_the_exit_code(start: Start, app: App) -> None:
    process = start("--processes", "2")
    all_up(app, 2)
    limit = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < limit:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.002)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Traceback" not in err


def test_without_their_supervisor_they_drain(start: Start, app: App, place: Path) -> None:
    process = start("--processes", "2", "--grace", "0.5")
    all_up(app, 2)
    job_id = lingering(app, "linger", place)
    pids = members(process)
    process.kill()
    process.wait(timeout=20)
    try:
        until(lambda: gone(pids), "the workers end")
    finally:
        for pid in filter(running, pids):
            os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=20)
    assert err.count(": drained: every job of this worker is finished or given back\n") == 2
    assert (app.sync.get(job_id).state, app.sync.get(job_id).attempt) == (State.SCHEDULED, 0)


def test_the_worst_of_their_exit_codes(start: Start, app: App, place: Path) -> None:
    process = start("--processes", "2", "--grace", "0")
    all_up(app, 2)
    lingering(app, "deaf_thread", place)
    process.terminate()
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert err.count("error: a handler did not end when it was told to") == 1


def test_stopped_before_anybody_has_started(start: Start) -> None:
    process = start("--processes", "2")
    until(lambda: members(process), "the first is there")
    process.terminate()
    out, _ = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "")


@pytest.mark.parametrize(
    ("options", "env", "said"),
    [
        (
            ["--concurrency", "0"],
            {},
            "error: concurrency=0 must be a whole number, at least 1, or a policy of ropewalk.p",
        ),
        (["--type", "ad"], {}, "error: no job type named 'ad' is registered here; did you mean 'add'?"),
        (["--processes", "0"], {}, "error: Invalid value for '--processes': 0 is not in the range 1<=x<=256"),
        ([], {"ROPEWALK_URL": "memory://"}, "error: memory:// lives inside one process: --processes needs a store "),
    ],
)
def test_what_makes_no_sense_is_said_once(options: list[str], env: dict[str, str], said: str, ropewalk: Run) -> None:
    answer = ropewalk("worker", "shop:app", "--processes", "3", *options, **env)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(said)
    assert answer.err.count("\n") == 1


def test_what_a_handler_starts_has_no_hold_on_them(start: Start, app: App) -> None:
    start("--processes", "2")
    asked = app.sync.enqueue(shop.inherited())
    until(lambda: asked.status().terminal, "it ends")
    assert app.sync.get(asked.id).result == "[] False\n"


def test_a_terminals_ctrl_c_reaches_the_supervisor_alone(start: Start, app: App) -> None:
    process = start("--processes", "2")
    all_up(app, 2)
    groups = {os.getpgid(pid) for pid in members(process)}
    assert len(groups) == 2
    assert os.getpgid(process.pid) not in groups
