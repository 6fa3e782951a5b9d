"""Nothing outlives a home: not its processes, not its directory, whether it is closed or its owner is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.servers import place
from tests.servers.account import NOBODY, can_reach
from tests.servers.free_port import CANDIDATES, HOST, _is_free, free_port
from tests.servers.home import Home, ServerFailed
from tests.servers.postgres import USER

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]
GONE_SECONDS_MAX = 20.0


def start_program(name: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, str(PROGRAMS / f"{name}.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def until(what: str, happened: Callable[[], bool]) -> None:
    limit = time.monotonic() + GONE_SECONDS_MAX
    while not happened():
        assert time.monotonic() < limit, f"{what}: not within {GONE_SECONDS_MAX:g} s"
        time.sleep(0.01)


def runs(pid: int) -> bool:
    """Whether a process of somebody else's still runs. One that ended is listed, as Z, until its parent asks."""
    try:
        os.kill(pid, 0)
        return not Path("/proc").is_dir() or " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_and_its_directory_die_with_the_process_that_started_it(blow: signal.Signals) -> None:
    holder = start_program("hold_server")
    assert holder.stdout is not None
    pid, port, directory = (holder.stdout.readline().strip() for _ in range(3))
    assert runs(int(pid)), holder.communicate()
    with psycopg.connect(f"postgresql://{USER}@{HOST}:{port}/postgres", autocommit=True) as visitor:
        [backend] = visitor.execute("SELECT pg_backend_pid()").fetchone() or ()
        holder.send_signal(blow)
        holder.communicate()
        until("the directory is removed", lambda: not Path(directory).exists())
        until("the server ends", lambda: not runs(int(pid)))
        until("its sessions end", lambda: not runs(backend))
    assert _is_free(int(port))


def test_a_stopped_process_dies_too() -> None:
    home = Home("test")
    process = home.start("sleep", "600")
    process.send_signal(signal.SIGSTOP)
    home.close()
    assert process.wait(GONE_SECONDS_MAX) == -signal.SIGQUIT
    assert not home.path.exists()
    home.close()


def test_servers_of_another_home_are_left_alone() -> None:
    one, other = Home("test"), Home("test")
    process = other.start("sleep", "600")
    one.close()
    assert other.path.exists()
    assert process.poll() is None
    other.close()
    process.wait(GONE_SECONDS_MAX)


def test_a_tool_that_fails_is_quoted() -> None:
    home = Home("test")
    with pytest.raises(ServerFailed, match="sh failed; it said:\nno such luck"):
        home.run("/bin/sh", "-c", "echo no such luck; exit 3")
    home.close()


def test_servers_see_nothing_of_the_environment_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "1")
    home = Home("test")
    home.run("/bin/sh", "-c", "env; id -u")
    said = home.log.read_text()
    assert "PGPORT" not in said
    assert said.endswith(f"{os.geteuid() or NOBODY}\n")
    home.close()


def test_no_root_is_needed() -> None:
    program = start_program("serve_as_nobody")
    printed, complaint = program.communicate(timeout=60)
    assert printed.splitlines() == [f"{os.geteuid() or NOBODY} (42,)", "gone"], complaint


def test_a_place_the_server_cannot_reach_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(closed))
    if os.geteuid() != 0:  # then the server is who made it
        assert place.on_disk() == closed
        return
    assert not can_reach(closed)
    assert place.on_disk() == place.EVERYBODYS
    monkeypatch.setattr(place, "EVERYBODYS", closed)
    with pytest.raises(PermissionError, match="TMPDIR"):
        place.on_disk()


def test_too_little_memory_means_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "MEMORY_BYTES_MIN", 2**62)
    assert place.in_memory() is None


def test_a_port_in_use_is_not_free() -> None:
    port = free_port()
    assert port in CANDIDATES
    with socket.create_server((HOST, port)):
        assert not _is_free(port)
    assert _is_free(port)
