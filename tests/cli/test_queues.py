"""H5, R19: `ropewalk queues` shows what waits and runs, pauses and resumes."""

from __future__ import annotations

import re

from ropewalk import App
from tests.cli.conftest import Run


def test_list_pause_and_resume(ropewalk: Run, app: App) -> None:
    assert app.sync.queues() == []
    assert ropewalk("queues", "list").out == "no queue has jobs that wait or run, and none is paused\n"
    for queue in ("mail", "mail", "re\aports"):
        app.sync.enqueue("add", {"a": 1, "b": 2}, queue=queue)
    app.sync.enqueue("add", {"a": 1, "b": 2}, queue="mail", delay=60)
    done = ropewalk("queues", "pause", "mail", "empty")
    assert (done.code, done.out) == (0, "mail  paused\nempty  paused\n")
    header, *rows = ropewalk("queues", "list").out.splitlines()
    assert header.split() == ["NAME", "STATE", "READY", "RUNNING", "DELAYED", "RETRYING", "PENDING", "OLDEST"]
    assert [re.sub(r"\s+", " ", row) for row in rows[:1]] == ["empty paused 0 0 0 0 0"]
    assert re.fullmatch(r"mail\s+paused\s+2\s+0\s+1\s+0\s+0\s+\S+ (ms|s)", rows[1])
    assert re.fullmatch(r"re\\x07ports\s+active\s+1\s+0\s+0\s+0\s+0\s+\S+ (ms|s)", rows[2])
    assert ropewalk("queues", "resume", "mail", "empty", "--json").json == {"resumed": ["mail", "empty"]}
    assert [queue.paused for queue in app.sync.queues()] == [False, False]


def test_a_name_that_nobody_knows_is_probably_mistyped(ropewalk: Run, app: App) -> None:
    app.sync.enqueue("add", {"a": 1, "b": 2}, queue="mail")
    assert ropewalk("queues", "pause", "mail").err == ""
    for verb, name in (("pause", "mial"), ("resume", "amil")):
        done = ropewalk("queues", verb, name)
        assert (done.code, "warning: " in done.err, f"'{name}'" in done.err) == (0, True, True)


def test_the_document(ropewalk: Run, app: App) -> None:
    app.sync.enqueue("add", {"a": 1, "b": 2}, queue="mail", delay=60)
    app.sync.tenant("acme").enqueue("add", {"a": 1, "b": 2})
    assert ropewalk("queues", "list", "--json").json == {
        "queues": [
            {
                "name": "mail",
                "paused": False,
                "counts": {"scheduled": 0, "running": 0, "delayed": 1, "retrying": 0, "pending": 0},
                "oldest_ready_at": None,
                "oldest_ready_seconds": None,
            }
        ]
    }
    [theirs] = ropewalk("queues", "list", "--tenant", "acme", "--json").json["queues"]
    assert (theirs["name"], theirs["counts"]["scheduled"]) == ("default", 1)
    assert theirs["oldest_ready_at"].endswith("Z") and theirs["oldest_ready_seconds"] >= 0
