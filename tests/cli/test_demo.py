"""`ropewalk demo`, from beginning to end: what it promises, how long it takes, what it leaves behind."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import environment, until

SECONDS_MAX = 20
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")

EVERYDAY = [
    r"workers \w{4}, \w{4}, \w{4} are up",
    r"7 jobs queued in one transaction",
    r"send_email ada@example.org: attempt 1 failed \(MailServerBusy: 451 try again later\), next attempt in 0.5 s",
    r"charge_card 1042 failed for good \(LedgerClosed: ",
    r"refund 1042 queued in the same transaction",
    r"crunch 90000 done",
    r"nightly_digest monday done",
]
"""in any order"""
_KILLED = (
    r"worker (?P<killed>\w{4}) killed \(SIGKILL\) while running encode_video holiday.mp4 at \d0 %; its lease expires"
)
_FROZEN = r"worker (?P<frozen>\w{4}) frozen \(SIGSTOP\) while running transcribe interview.wav at \d0 %"
_END = [
    r"encode_video +1 +completed +2 +1 ",
    r"✓ nothing lost: 9 enqueued \+ 1 compensation = 10 ended",
    r"✓ the other workers drained on SIGTERM and exited 0",
    r"ropewalk worker shop:app",
]
TROUBLE = [
    [
        _KILLED,
        r"encode_video holiday.mp4 taken back from worker (?P=killed)",
        r"encode_video holiday.mp4: attempt 2 on worker \w{4}, resumed from checkpoint \d0 %",
        *_END,
    ],
    [_FROZEN, r"worker (?P=frozen) thawed", r"the store refuses that late write", *_END],
]
"""each in this order, with anything in between: which of the two leases runs out first is open"""


@pytest.fixture
def place(place: Path) -> Iterator[Path]:
    """Where the demo makes its temporary directory; afterwards nothing of it may be left, nor any process."""
    yield place
    assert list(place.iterdir()) == []
    # A handler's own process notices by itself that its worker is gone.
    until(lambda: not processes_of(place), "every process ends", seconds=5)


def processes_of(place: Path) -> list[str]:
    """Command lines of live processes that were told to work there."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(place) in (process / "environ").read_bytes() and process.name != str(os.getpid()):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


def start(
    place: Path, *options: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ropewalk", "demo", *options],
        env=environment(TMPDIR=str(place)),
        text=True,
        stdout=stdout,
        stderr=stderr,
    )


def test_in_a_pipe_it_tells_its_story_in_plain_lines(place: Path) -> None:
    began = time.monotonic()
    process = start(place)
    out, err = process.communicate(timeout=60)
    took = time.monotonic() - began
    assert (process.returncode, err) == (0, "")
    assert CONTROL.findall(out) == []
    assert [line for line in EVERYDAY if not re.search(line, out)] == []
    for story in TROUBLE:
        assert re.search(".*".join(story), out, re.DOTALL), out
    assert "NOT KEPT" not in out
    assert out.count("✓") == 8
    assert took < SECONDS_MAX


@pytest.mark.parametrize(
    ("stop", "after"),
    [
        (signal.SIGINT, "frozen (SIGSTOP)"),
        (signal.SIGTERM, "7 jobs queued"),
        (signal.SIGHUP, "7 jobs queued"),
    ],
)
def test_interrupted_it_cleans_up(stop: signal.Signals, after: str, place: Path) -> None:
    process = start(place)
    assert process.stdout is not None
    assert any(after in line for line in process.stdout)
    assert len(processes_of(place)) >= 2
    process.send_signal(stop)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err.strip()) == (130, "")


def test_on_a_terminal_there_are_bars(place: Path) -> None:
    ours, theirs = pty.openpty()
    process = start(place, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:
        pass  # the other side is closed
    finally:
        os.close(ours)
    text = seen.decode()
    assert process.wait(timeout=20) == 0
    assert "━" in text
    assert "\x1b[" in text
    assert "encode_video holiday.mp4" in text
    assert "✓ nothing lost" in text
