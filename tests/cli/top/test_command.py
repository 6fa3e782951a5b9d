"""H5: `ropewalk top` as a command: one frame where there is no terminal, one document, and live in one."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time

from ropewalk import App
from tests.cli.conftest import HERE, Run, environment


def test_one_frame(ropewalk: Run, app: App) -> None:
    app.sync.enqueue("add", {"a": 1, "b": 2}, queue="mail")
    printed = ropewalk("top", "--once")
    assert (printed.code, printed.err) == (0, "")
    title, numbers, *rest = printed.out.splitlines()
    assert title.startswith("ropewalk  sqlite:///")
    assert numbers.startswith("finished 0/s  queued ")
    assert any(line.startswith("mail") and " active " in line for line in rest)
    assert "no workers: start one with `ropewalk worker module:app`" in rest
    assert ropewalk("top").out.splitlines()[1].startswith("finished 0/s"), "without a terminal it is the same"


def test_the_document(ropewalk: Run, app: App) -> None:
    app.sync.enqueue("add", {"a": 1, "b": 2}, queue="mail")
    document = ropewalk("top", "--json", "--last", "600").json
    [queue] = document["queues"]
    assert (queue["name"], queue["ready"], queue["paused"]) == ("mail", 1, False)
    assert document["tenant"] == "default"
    assert len(document["line"]) >= 10


def test_live_in_a_terminal(app: App, url: str) -> None:
    """It fills an alternate screen, `p` pauses the chosen queue, `q` leaves the terminal as it was."""
    app.sync.enqueue("add", {"a": 1, "b": 2}, queue="mail")
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "ropewalk", "top"],
        env=environment(ROPEWALK_URL=url, TERM="xterm", LINES="24"),
        cwd=HERE,
        stdin=slave,
        stdout=slave,
        stderr=subprocess.PIPE,
    )
    os.close(slave)
    try:
        heard = said(master, "select a queue")
        assert "\x1b[?1049h" in heard
        os.write(master, b"\x1b[Bp")
        said(master, "paused")
        assert [(queue.name, queue.paused) for queue in app.sync.queues()] == [("mail", True)]
        os.write(master, b"q")
        assert "\x1b[?1049l" in said(master, "\x1b[?1049l")
        assert process.wait(20) == 0
        assert process.stderr is not None and process.stderr.read() == b""
    finally:
        process.kill()
        process.communicate()
        os.close(master)


def said(terminal: int, what: str) -> str:
    """Everything up to and with that."""
    heard, until = "", time.monotonic() + 20
    while what not in heard:
        assert time.monotonic() < until, f"{what!r} was not said in {heard!r}"
        if select.select([terminal], [], [], 0.1)[0]:
            heard += os.read(terminal, 65536).decode(errors="replace")
    return heard
