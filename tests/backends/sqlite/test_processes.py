"""Several processes on one file: nothing twice, nothing lost, nobody asleep."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ropewalk.backends.sqlite import SqliteStore
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.backends.sqlite.listening import directory_for
from ropewalk.domain.jobs.states import State
from ropewalk.domain.search import Filter
from ropewalk.ports.notifier import Hint
from tests.backends.sqlite.conftest import output_of, plain, submit

Start = Callable[..., "subprocess.Popen[str]"]


async def test_every_job_is_claimed_once_by_four_processes(store: SqliteStore, path: Path, start: Start) -> None:
    """safe-4; and each of them gets its turn."""
    ids = [f"job-{number}" for number in range(8000)]
    await submit(store, *map(plain, ids))
    pipe = subprocess.PIPE
    workers = [start("work_off", path, f"worker-{number}", "together", stdin=pipe) for number in range(4)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "open\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    done = [json.loads(output_of(worker)) for worker in workers]
    assert sorted(each for batch in done for each in batch) == sorted(ids)
    assert all(done), [len(batch) for batch in done]
    assert await store.count("default", Filter(states=(State.COMPLETED,))) == len(ids)


async def test_a_hint_wakes_a_listener_in_another_process(store: SqliteStore, path: Path, start: Start) -> None:
    """live-1: within 50 ms, as long as the machine has time for both."""
    hint, rounds = Hint(ready=("default",)), 20
    listener = start("listen", path, rounds)
    assert listener.stdout is not None
    assert listener.stdout.readline() == "listening\n"
    delays: list[float] = []
    while len(delays) < rounds:
        sent_at = time.monotonic()
        store.notifier.publish(hint)
        heard_at, heard = listener.stdout.readline().split(" ", 1)
        assert msgspec.json.decode(heard, type=Hint) == hint
        delays.append(float(heard_at) - sent_at)
    assert statistics.median(delays) < 0.05, delays
    output_of(listener)
    assert not directory_for(path).exists(), "the listener left its socket behind"


async def test_a_commit_that_nobody_announced_is_noticed(store: SqliteStore, path: Path, start: Start) -> None:
    """Everything works without sockets, only later."""
    listener = start("listen", path, 1)
    assert listener.stdout is not None
    assert listener.stdout.readline() == "listening\n"
    [socket] = directory_for(path).iterdir()
    socket.unlink()
    while listener.poll() is None:  # it takes note of the file first: a change before that is not one
        await store.pause("default", "q", paused=True)
        await store.pause("default", "q", paused=False)
    [line] = output_of(listener).splitlines()
    assert msgspec.json.decode(line.split(" ", 1)[1], type=Hint) == Hint(many=True, control=True)


async def test_what_was_acknowledged_survives_the_kill_of_its_writer(path: Path, start: Start) -> None:
    """safe-2, safe-17: killed in the middle of a batch, five times over."""
    acknowledged: set[str] = set()
    for _ in range(5):
        writer = start("submit_forever", path)
        assert writer.stdout is not None
        for _ in range(20):
            acknowledged |= set(writer.stdout.readline().split())
        writer.send_signal(signal.SIGKILL)
        # Not `communicate`, which begins behind what was read ahead, in the middle of a line. The last may be cut.
        *whole, _ = writer.stdout.read().split("\n")
        acknowledged |= {each for line in whole for each in line.split()}
    db = sqlite.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    stored = {job_id for (job_id,) in db.execute("SELECT id FROM job")}
    db.close()
    assert len(acknowledged) >= 5 * 20 * 20
    assert acknowledged <= stored


async def test_two_processes_create_and_migrate_one_file(path: Path, start: Start) -> None:
    for _ in range(2):
        for output in [output_of(process) for process in [start("work_off", path, f"w{n}") for n in range(3)]]:
            assert json.loads(output) == []
        path.unlink()


def test_a_child_that_outlives_its_parent_loses_nothing(path: Path, start: Start) -> None:
    """Failure 34: SQLite's lock table does not survive a fork."""
    output_of(start("fork", path))
    db = sqlite.connect(path)
    stored = {job_id for (job_id,) in db.execute("SELECT id FROM job")}
    db.close()
    assert stored == {"parent-1", "parent-2", "child-1", "child-2", "child-3"}


def test_the_interpreter_ends_although_nobody_closed_the_store(path: Path, start: Start) -> None:
    started_at = time.monotonic()
    assert output_of(start("leave_open", path)) == "acknowledged\n"
    assert time.monotonic() - started_at < 20, "imports included, on a busy machine"
    db = sqlite.connect(path)
    assert ("before",) in db.execute("SELECT id FROM job").fetchall()
    db.close()


def test_an_io_error_while_committing_leaves_the_outcome_open(path: Path, start: Start) -> None:
    """Failure 15: the connection is not used again, and the store goes on when the disk does."""
    told, checked = output_of(start("break_commit", path)).splitlines()
    assert told.startswith(f"OutcomeUnknown: {path}: disk I/O error while committing")
    assert checked == "ok"
