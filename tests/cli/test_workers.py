"""H5, R19: `ropewalk workers` lists them, the dead ones too, and tells one to stop wherever it runs."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from ropewalk import App
from tests.cli.conftest import Run, Start, lingering, until


def test_a_worker_of_another_process_is_told_to_drain(ropewalk: Run, start: Start, app: App, place: Path) -> None:
    """It finishes what it runs, logs who told it, and exits 0."""
    process = start("--queue", "default")
    job_id = lingering(app, "linger", place)
    [card] = app.sync.workers()
    header, row = ropewalk("workers", "list").out.splitlines()
    assert header.split() == ["ID", "WHERE", "STATE", "HOLDS", "SLOTS", "UP", "LAST", "SIGN", "SERVES"]
    serves = r"add, bill, block_the_loop, deaf_task and 5 more; queues default"
    shown = rf"{card.id}  \S+:{process.pid}  alive  1\s+10\s+\S+ \w+\s+\S+ \w+ ago\s+{serves}"
    assert re.fullmatch(shown, re.sub(r" {2,}", "  ", row)), row

    told = ropewalk("workers", "drain", card.id)
    assert (told.code, told.out) == (0, f"{card.id}  asked to drain\n")
    [document] = ropewalk("workers", "list", "--json").json["workers"]
    assert (document["state"], document["draining"], document["held"]) == ("draining", True, 1)
    (place / "go").touch()
    _, log = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "asked to drain by app.drain_worker or `ropewalk workers drain`" in log
    assert "drained: every job of this worker is finished or given back" in log
    assert app.sync.get(job_id).result == "gone"
    assert ropewalk("workers", "list").out == "no workers: start one with `ropewalk worker module:app`\n"


def test_a_worker_that_is_not_there_cannot_be_told(ropewalk: Run, app: App) -> None:
    assert app.sync.workers() == []
    refused = ropewalk("workers", "drain", "nobody")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: no worker 'nobody': it has stopped, or never existed")
    assert "`ropewalk workers list`" in refused.err


def test_a_dead_worker_is_shown_as_such(ropewalk: Run, start: Start, app: App) -> None:
    process = start("--lease", "1")
    until(app.sync.workers, "the worker serves")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    until(lambda: ropewalk("workers", "list", "--json").json["workers"][0]["state"] == "dead", "its lease is over")
    assert "  dead  " in ropewalk("workers", "list").out
